// Formulas: what Markdown left as TeX is set by KaTeX, which is bundled.
for (const element of document.querySelectorAll(".arithmatex")) {
  const text = element.textContent.trim();
  const display = text.startsWith("\\[");
  katex.render(text.replace(/^\\[([]/, "").replace(/\\[)\]]$/, ""), element, { displayMode: display, throwOnError: true });
}
