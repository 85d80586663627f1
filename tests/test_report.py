"""The report as a reader meets it, and the images of MNIST that a user brings."""

import gzip
import re
import struct
import xml.etree.ElementTree as xml

import numpy as np
import pytest

import widelimit as wl
from widelimit import experiments as ex
from widelimit.experiments import EXPERIMENTS, Outcome, Result, Table, Verdict
from widelimit.experiments.papers import _mnist
from widelimit.experiments.report import report_html
from widelimit.experiments.report._introduction import introduction
from widelimit.experiments.report._math import mathml
from widelimit.experiments.report._prose import number, plain, prose


def drawn(page):
    """The formulas of a page, as the LaTeX that they were made from; all are well-formed."""
    formulas = re.findall(r"<math.*?</math>", page, re.DOTALL)
    return [xml.fromstring(f).find("semantics/annotation").text for f in formulas]


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\frac12", "<mfrac><mn>1</mn><mn>2</mn></mfrac>"),
        (
            r"\lambda_{\min}",
            "<msub><mi>λ</mi><mi>min</mi></msub>",
        ),
        ("x'_i", "<msubsup><mi>x</mi><mi>i</mi><mrow><mo>′</mo></mrow></msubsup>"),
        (
            "n^{-1/2}",
            "<msup><mi>n</mi><mrow><mrow><mo>−</mo><mn>1</mn><mo lspace='0' rspace='0'>/</mo>",
        ),
        (r"\text{a < b}", "<mtext>a &lt; b</mtext>"),
    ],
)
def test_formulas(latex, expected):
    assert expected in mathml(latex)
    assert drawn(mathml(latex)) == [latex]


@pytest.mark.parametrize("latex", [r"\frac{1", r"\colour x", r"\sqrt", r"\mathbb Q", "a^", "{"])
def test_formulas_that_are_none_are_refused(latex):
    with pytest.raises(ValueError, match=r"formula"):
        mathml(latex)


def test_whatever_the_library_writes_can_be_drawn():
    nets = (
        wl.mlp(depth=3, activation="gelu", b_std=0.1),
        wl.resnet(depth=2, alpha=0.1, activation="erf"),
        wl.Dense() >> wl.Phi("abs") >> wl.Dense(w_std=1.5),
    )
    for net in nets:
        for write in (wl.latex, wl.latex_kernels):
            found = xml.fromstring(mathml(write(net), display=True))
            assert len(found.findall(".//mtr")) == write(net).count(r"\\") + 1


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("The kernel drifts by at most n^(-1/2).", ["n^{-1/2}"]),
        (
            "|e_t| <= (1 - eta lambda_min/3)^t |e_0| at",
            [r"|e_t|\le(1-\eta\lambda_{\min}/3)^t|e_0|"],
        ),
        ("below 2/(lambda_min + lambda_max)", [r"2/(\lambda_{\min}+\lambda_{\max})"]),
        ("ResNet 0.1: mu_D2 at L=15, alpha = 0.01.", None),
        ("1.2e-05 and 1e-8, 3e+04", [r"1.2\times10^{-5}", "10^{-8}", r"3\times10^{4}"]),
        ("figure1e5, v1.2e, alphabet", []),
        ("a < b & $5$ *c*", []),
    ],
)
def test_plain_text_with_formulas(text, formulas):
    page = plain(text)
    if formulas is None:
        formulas = [r"\alpha=0.1", r"\mu_{\mathrm{D2}}", "L=15", r"\alpha=0.01"]
    assert drawn(page) == formulas
    if not formulas:
        assert page == text.replace("&", "&amp;").replace("<", "&lt;")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (-2.5e-7, "−2.5 × 10<sup>−7</sup>"),
        (3.2e8, "3.2 × 10<sup>8</sup>"),
        (0.0, "0"),
        (0.1, "0.1"),
        (123456.7, "123457"),
        (100.0, "100"),
        (7, "7"),
        ("a<b", "a&lt;b"),
    ],
)
def test_numbers(value, shown):
    assert number(value) == shown


def test_every_figure_says_what_to_see():
    for name, e in EXPERIMENTS.items():
        assert len(e.caption) > 80, name
        assert "$" not in re.sub(r"<annotation.*?</annotation>", "", prose(e.caption)), name
    for idea in (r"\hat\Theta", r"\kappa", r"\mu_{\mathrm{D2}}^2", r"\mu_{\mathrm G}^2", r"\alpha"):
        assert any(idea in formula for formula in drawn(introduction())), idea


def test_numbers_in_the_introduction_are_right():
    target = wl.smoothness.second_derivative(ex.target)
    assert float(target) == pytest.approx(205**0.5, rel=1e-9)
    small = wl.spectrum.kink(wl.resnet(depth=5, alpha=1e-3))
    assert small == pytest.approx(1e-6 * 5 / (2 * np.pi), rel=1e-4)
    assert wl.spectrum.kink(wl.mlp(depth=5)) == pytest.approx(5 / (2 * np.pi))


def test_the_page():
    table = Table("mu_D2", ("network", "value"), (("ResNet 0.1", 1e-9), ("MLP", 14722.25)))
    verdict = Verdict("It holds.", "n^(-1/2)", "holds", "1")
    result = Result("figure5", {}, {}, (table,), (verdict,), "closed form")
    made = {"widelimit": "1.2", "date": "today", "command": "widelimit reproduce --out 'a<b'"}
    done = Outcome(EXPERIMENTS["figure5"], result, 2.0, made=made)
    failed = Outcome(EXPERIMENTS["figure2"], None, 1.0, error="no <luck>")
    page = report_html([failed, done], {}, made | {"seed": "7"})
    assert "<details open" not in page
    assert "<script" not in page
    assert "1.2 · today · seed 7" in page
    assert page.count("<code>widelimit reproduce --out &#x27;a&lt;b&#x27;</code>") == 2
    assert "no &lt;luck&gt;" in page
    assert page.index("What is measured here</h2>") < page.index("Summary</h2>")
    assert "<td class='n'>14722</td>" in page
    assert len(drawn(page)) > 30


def idx(array):
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture
def images(tmp_path):
    """A small set in MNIST's format, two files of it gzipped."""
    rng = np.random.default_rng(5)
    folder = tmp_path / "images"
    folder.mkdir()
    parts = {}
    for name, count in (("train", 60), ("t10k", 40)):
        labels = rng.choice([0, 8, 3], count).astype(np.uint8)
        pixels = rng.integers(0, 120, (count, 4, 5)) + 15 * (labels == 0)[:, None, None]
        parts[name] = pixels.astype(np.uint8), labels
        (folder / f"{name}-images-idx3-ubyte").write_bytes(idx(parts[name][0]))
        (folder / f"{name}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))
    return folder, parts


def test_accuracy_on_images_of_the_user_by_another_path(images):
    folder, parts = images
    found = ex.mnist(mnist=str(folder), depths=(1,), alphas=(), sizes=(10,))
    (x, labels), (x_test, labels_test) = parts["train"], parts["t10k"]
    first = [np.flatnonzero(labels == digit)[:5] for digit in (0, 8)]
    x, y = x[np.concatenate(first)].reshape(10, -1) / 255, np.repeat([1.0, -1.0], 5)
    keep = np.isin(labels_test, (0, 8))
    x_test = x_test[keep].reshape(keep.sum(), -1) / 255 - x.mean(0)
    x = x - x.mean(0)
    x, x_test = (v / np.linalg.norm(v, axis=1)[:, None] for v in (x, x_test))
    net = wl.mlp(depth=1)
    guess = wl.ntk(net, x_test, x) @ np.linalg.solve(wl.ntk(net, x), y)
    wrong = int(np.sum((guess > 0) != (labels_test[keep] == 0)))
    assert 0 < wrong < keep.sum() / 2
    assert found.data["errors"] == {"N = 10, L = 1": {"MLP": wrong}}
    assert found.data["published"] == {}
    assert len(found.data["wrong"]) == min(wrong, 16)


def test_the_published_table_is_read_to_the_image():
    names = ("MLP", "ResNet 1", "ResNet 0.1")
    known = {"N = 50, L = 5": dict(zip(names, (75, 66, 56), strict=True))}
    agree, off = ({case: by | more for case, by in known.items()} for more in ({}, {"MLP": 73}))
    (verdict,) = _mnist._agreement(agree, off, known)
    assert verdict.verdict == "holds"
    assert "2 of 3 agree without" in verdict.evidence
    (verdict,) = _mnist._agreement(off, agree, known)
    assert verdict.verdict == "holds in part"
    assert "N = 50, L = 5, MLP: -2" in verdict.evidence


DAMAGE = {
    "train-images-idx3-ubyte": [
        (lambda data: None, "has no file train-images-idx3-ubyte or"),
        (lambda data: b"", "begins with nothing; expected 00 00 08 03 and 3 sizes"),
        (lambda data: b"\0\0\x08\x01" + data[4:], "begins with 00 00 08 01"),
        (lambda data: data[:-7], "has 1209 bytes, but its sizes 60 x 4 x 5 need 1216"),
        (lambda data: data + b"x", "has 1217 bytes"),
        (lambda data: idx(np.zeros((59, 4, 5), np.uint8)), "holds 59 images and .* 60 labels"),
        (lambda data: idx(np.zeros((60, 4, 4), np.uint8)), r"\(4, 4\) pixels and .*\(4, 5\)"),
    ],
    "t10k-labels-idx1-ubyte.gz": [
        (lambda data: data[:-9], "t10k-labels-idx1-ubyte.gz is not a complete gzip file"),
        (lambda data: b"no gzip", "is not a complete gzip file"),
        (lambda data: gzip.compress(b"\0\0"), "expected 00 00 08 01 and 1 size, as MNIST's labels"),
    ],
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_images_are_named_before_anything_is_written(images, tmp_path, name):
    folder, _ = images
    file, out = folder / name, tmp_path / "out"
    before = file.read_bytes()
    for change, message in DAMAGE[name]:
        data = change(before)
        file.unlink(missing_ok=True)
        if data is not None:
            file.write_bytes(data)
        with pytest.raises(ValueError, match=message):
            ex.reproduce(out, figures=["figure5", "mnist"], mnist=folder)
        assert not out.exists()


def test_what_is_needed_is_asked_for(tmp_path):
    with pytest.raises(ValueError, match="mnist needs --mnist DIR"):
        ex.reproduce(tmp_path / "out", figures=["mnist"])
    with pytest.raises(ValueError, match=r"nowhere is not a folder.*t10k-labels-idx1-ubyte"):
        ex.reproduce(tmp_path / "out", mnist=tmp_path / "nowhere")
    assert ex.choose((), {"mnist": None}).keys() == EXPERIMENTS.keys() - {"mnist"}
    assert not (tmp_path / "out").exists()


def test_images_that_nothing_asks_for(images):
    with pytest.raises(ValueError, match="--mnist is for mnist only"):
        ex.choose([5], {"mnist": images[0]})
    with pytest.raises(ValueError, match="50 training images need 25 of each digit"):
        ex.mnist(mnist=str(images[0]))
