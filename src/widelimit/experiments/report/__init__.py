"""One self-contained page: claims, figures, numbers and verdicts."""

from ._figures import Image as Image
from ._html import report_html as report_html
from ._write import write_report as write_report
