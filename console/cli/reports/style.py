"""The style of the page. The page's policy names it by its hash, so it is one constant."""

from typing import Final

STYLE: Final = """
:root{--ink:#1d2430;--soft:#566072;--line:#d5dbe5;--back:#fff;--card:#f6f8fb;--good:#1b6e3c;--goodback:#e2f4e8;--bad:#a3201d;--badback:#fde6e4;--wait:#7a4a00;--waitback:#fdf0d8;--calm:#566072;--calmback:#e9edf3;--fill:#2f6fd0;--catch:#17879b;--check:#7b4fc4;--gate:#d99a1b;--fail:#c8322e;--rest:#aab4c3}
@media (prefers-color-scheme:dark){:root{--ink:#e4e9f2;--soft:#9aa6ba;--line:#333c4c;--back:#12161d;--card:#1a202a;--good:#7fd6a0;--goodback:#173524;--bad:#ff9e97;--badback:#45201e;--wait:#f2c26b;--waitback:#3d2f12;--calm:#9aa6ba;--calmback:#28303d;--fill:#5e97ec;--catch:#3fb3c8;--check:#a684e6;--gate:#e0ac3d;--fail:#ee6560;--rest:#5a6577}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:1rem;background:var(--back);color:var(--ink);font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{margin:0;font-size:1.6rem}h2{margin:0 0 .5rem;font-size:1.25rem}h3{margin:1.25rem 0 .4rem;font-size:1rem}
p{margin:.4rem 0}a{color:inherit}
.headline{font-size:1.1rem;color:var(--soft)}
section{margin:1rem 0;padding:1rem;border:1px solid var(--line);border-radius:.5rem;background:var(--card)}
.facts{color:var(--soft);font-size:.9rem}.fact{display:inline-block;margin-right:1rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{padding:.3rem .6rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--line);overflow-wrap:normal}
th{color:var(--soft);font-weight:600;white-space:nowrap}
td{white-space:nowrap}td.prose{white-space:normal;min-width:12rem;overflow-wrap:anywhere}
td ul{margin:.2rem 0;padding-left:1.2rem}
.figure{text-align:right;font-variant-numeric:tabular-nums}
.badge{display:inline-block;padding:0 .5rem;border-radius:.8rem;font-size:.85rem;font-weight:600;white-space:nowrap}
.line{padding:.3rem .6rem;border-radius:.3rem}
.good{color:var(--good);background:var(--goodback)}.bad{color:var(--bad);background:var(--badback)}
.wait,.doubt{color:var(--wait);background:var(--waitback)}.calm{color:var(--calm);background:var(--calmback)}
svg.bar{display:block;width:100%;height:1.25rem;border-radius:.3rem}
svg.columns{display:block;width:100%;height:5rem;border-bottom:1px solid var(--line)}
svg.swatch{width:.8rem;height:.8rem}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;margin:.4rem 0;padding:0;list-style:none;font-size:.9rem}
.phase.rest,.phase.prepare{fill:var(--rest)}.phase.fill{fill:var(--fill)}.phase.catch{fill:var(--catch)}.phase.check{fill:var(--check)}
.phase.gate{fill:var(--gate)}.phase.live{fill:var(--good)}.phase.pause{fill:var(--wait)}.phase.fail{fill:var(--fail)}
.day.same{fill:var(--fill)}.day.other,.day.mark{fill:var(--fail)}
details{margin:.75rem 0}summary{cursor:pointer;font-weight:600}
@media (max-width:40rem){
.stack table,.stack tbody,.stack tr,.stack td{display:block;white-space:normal;text-align:left}
.stack thead{display:none}
.stack tr{padding:.5rem 0;border-bottom:1px solid var(--line)}
.stack td{padding:.1rem 0;border:0}.stack td:empty{display:none}
.stack td[data-label]::before{content:attr(data-label) ": ";color:var(--soft)}
section{padding:.75rem}
}
@media print{section{break-inside:avoid}.wide{overflow:visible}}
"""
