"""The style of the report: for wide and narrow screens, light and dark, and for paper."""

STYLE = """
:root { --ink: #1b1f24; --soft: #59636e; --line: #d8dee4; --back: #fff; --card: #f6f8fa; --link: #0a58a8;
  --yes: #00734f; --part: #8a5a00; --no: #b03a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ea; --soft: #9aa4ae; --line: #353c44; --back: #15181c;
  --card: #1e2329; --link: #79b8ff; --yes: #3fc295; --part: #e0a53c; --no: #ff8a5c; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100%; }
body { margin: 0; color: var(--ink); background: var(--back);
  font: 16px/1.55 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 940px; margin: 0 auto; padding: 32px 24px 64px; overflow-wrap: break-word; }
header > p, #introduction p, #provenance > p { max-width: 44em; }
h1 { font-size: 30px; line-height: 1.2; margin: 0 0 12px; }
h2 { font-size: 22px; line-height: 1.3; margin: 48px 0 6px; padding-top: 20px; border-top: 1px solid var(--line); }
h3 { font-size: 17px; margin: 26px 0 4px; line-height: 1.35; }
p { margin: 8px 0; }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
.soft { color: var(--soft); font-size: 14px; font-weight: 400; }
.soft a { color: inherit; text-decoration: underline; text-decoration-color: var(--line); }
.error { color: var(--no); font-weight: 600; }
math { font-family: "STIX Two Math", "Cambria Math", "Latin Modern Math", "DejaVu Math TeX Gyre", math;
  font-size: 1.03em; }
math[display=block] { margin: 14px 0; padding: 2px 0; overflow-x: auto; overflow-y: hidden; }
mtd { padding: 0.35em 0.15em; text-align: left; } mtd:first-child { text-align: right; }
nav { display: none; }
.tiles { display: flex; flex-wrap: wrap; gap: 10px; padding: 0; margin: 16px 0; list-style: none; }
.tiles li { background: var(--card); border-left: 4px solid; border-radius: 4px; padding: 6px 18px 6px 14px; }
.tiles b { font-size: 24px; margin-right: 4px; font-variant-numeric: tabular-nums; }
.yes { color: var(--yes); } .part { color: var(--part); } .no { color: var(--no); }
.badge { display: inline-block; border: 1px solid currentColor; border-radius: 11px; padding: 0 9px; font-size: 12.5px;
  line-height: 20px; font-weight: 600; white-space: nowrap; }
.claims h3 { margin: 22px 0 2px; font-size: 16px; }
.claims ul { list-style: none; margin: 0; padding: 0; }
.claims li { display: grid; grid-template-columns: 9.2em 1fr; padding: 5px 0; border-top: 1px solid var(--line);
  font-size: 15px; align-items: baseline; }
.claims .badge { justify-self: start; }
figure { margin: 16px 0; }
figcaption { font-size: 15px; margin-top: 10px; max-width: 52em; }
img { display: block; width: calc(var(--w) * 0.63px); max-width: 100%; height: auto; margin: 0 auto; background: #fff; }
@media (prefers-color-scheme: dark) { figure .scroll { background: #fff; border-radius: 6px; padding: 10px; } }
.verdict { border-left: 4px solid; padding: 2px 0 2px 14px; margin: 14px 0; font-size: 15px; }
.verdict p { color: var(--ink); margin: 4px 0; } .verdict p:first-child { font-size: 16px; }
.verdict .badge.yes { color: var(--yes); } .verdict .badge.part { color: var(--part); }
.verdict .badge.no { color: var(--no); }
.verdict .soft, .verdict p:last-child { font-size: 14px; color: var(--soft); }
details { margin: 8px 0; } summary { cursor: pointer; color: var(--link); font-size: 15px; padding: 4px 0; }
.scroll { overflow-x: auto; -webkit-overflow-scrolling: touch; }
table { border-collapse: collapse; font-size: 14px; margin: 10px 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding: 4px 0; }
th { font-weight: 600; vertical-align: bottom; max-width: 10em; } .k { white-space: nowrap; }
th, td { text-align: left; padding: 4px 16px 4px 0; border-bottom: 1px solid var(--line); }
td { vertical-align: top; white-space: nowrap; } .n { text-align: right; }
.made { display: grid; grid-template-columns: auto 1fr; gap: 4px 18px; font-size: 14px; margin: 8px 0; }
dt { color: var(--soft); } dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
code { font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; background: var(--card); padding: 1px 5px;
  border-radius: 3px; }
@media (min-width: 1200px) {
  body { display: grid; grid-template-columns: 236px minmax(0, 1fr); }
  nav { display: block; position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 36px 8px 24px 24px;
    font-size: 14px; border-right: 1px solid var(--line); }
  nav ul { list-style: none; margin: 0; padding: 0; }
  nav li { display: flex; justify-content: space-between; align-items: center; gap: 8px; padding: 2px 10px 2px 0; }
  nav span { display: flex; gap: 3px; } nav i { width: 7px; height: 7px; border-radius: 50%; background: currentColor; }
  main { width: 100%; }
}
@media (max-width: 640px) {
  main { padding: 20px 16px 48px; }
  h1 { font-size: 26px; } h2 { font-size: 20px; margin-top: 36px; }
  .tiles { gap: 8px; } .tiles li { padding: 4px 12px 4px 10px; font-size: 15px; } .tiles b { font-size: 20px; }
  .claims li { grid-template-columns: 1fr; gap: 2px; padding: 8px 0; }
  .claims h3 .soft { display: block; }
  img { max-width: none; width: calc(var(--w) * 0.55px); }
  math[display=block] { font-size: 0.86em; }
  .made { grid-template-columns: 1fr; gap: 0; } .made dd { margin-bottom: 6px; }
}
@media print {
  @page { margin: 16mm; }
  :root { --ink: #000; --soft: #444; --back: #fff; --card: #fff; }
  body { font-size: 10pt; display: block; } nav { display: none; } main { max-width: none; padding: 0; }
  table { font-size: 8pt; } th, td { padding-right: 7px; }
  .scroll { overflow: visible; } summary { display: none; } details::details-content { content-visibility: visible; }
  figure, .verdict, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } img { max-height: 120mm; width: auto; }
  a { color: inherit; }
}
"""
