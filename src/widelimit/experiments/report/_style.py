"""The style of the report, for the screen and for paper."""

STYLE = """
:root { --ink: #1b1f24; --soft: #59636e; --line: #d8dee4; --yes: #00734f; --part: #8a5a00; --no: #b03a00; }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: #fff; font: 15px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 980px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 28px; margin: 0 0 12px; }
h2 { font-size: 19px; margin: 36px 0 6px; line-height: 1.3; }
p { margin: 6px 0; }
.lead { font-size: 17px; }
.source { color: var(--soft); font-size: 13px; }
figure { margin: 14px 0; text-align: center; }
img { max-width: 100%; height: auto; max-height: 640px; }
figcaption { color: var(--soft); font-size: 13px; }
table { border-collapse: collapse; font-size: 13px; margin: 10px 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding: 4px 0; }
th, td { text-align: left; vertical-align: top; padding: 3px 12px 3px 0; border-bottom: 1px solid var(--line); }
.summary { width: 100%; }
.summary td:first-child, .summary td:last-child { white-space: nowrap; }
.wide { overflow-x: auto; }
.badge { display: inline-block; border: 1px solid currentColor; border-radius: 10px; padding: 0 8px; font-size: 12px;
  font-weight: 600; white-space: nowrap; }
.badge.yes { color: var(--yes); } .badge.part { color: var(--part); } .badge.no { color: var(--no); }
.verdict { border-left: 4px solid var(--line); padding: 4px 0 4px 14px; margin: 12px 0; font-size: 14px; }
.verdict.yes { border-color: var(--yes); } .verdict.part { border-color: var(--part); }
.verdict.no { border-color: var(--no); }
.error { color: var(--no); font-weight: 600; }
a { color: #0a58a8; text-decoration: none; } a:hover { text-decoration: underline; }
summary { cursor: pointer; color: var(--soft); font-size: 13px; }
@media print {
  @page { margin: 16mm; }
  body { font-size: 10pt; } main { max-width: none; padding: 0; }
  table { font-size: 8pt; } th, td { padding-right: 7px; }
  .wide { overflow: visible; } summary { display: none; }
  figure, .verdict, tr { break-inside: avoid; } h2 { break-after: avoid; } img { max-height: 120mm; }
  a { color: inherit; }
}
"""
