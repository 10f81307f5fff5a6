/* How report.html looks: light and dark, wide and narrow. */
#ifndef SLIPWAY_REPORT_STYLE_H
#define SLIPWAY_REPORT_STYLE_H

static const char report_style[] =
        ":root{color-scheme:light dark;--page:#f5f7f9;--card:#fff;--text:#1c2733;--soft:#5c6b7a;--line:#e2e7ec;--done:#2f7fc1;--kept:#a9b8c6;--open:#c98a1b;"
        "--bad:#c5352b;--bad-card:#fdf0ee;--good:#1f8a4c;--name:10rem}\n"
        "@media(prefers-color-scheme:dark){:root{--page:#10161d;--card:#18212b;--text:#dde6ee;--soft:#93a3b3;--line:#2b3845;--done:#3d8fd4;--kept:#526273;"
        "--open:#d89c35;--bad:#f0685c;--bad-card:#2c1a1c;--good:#43b877}}\n"
        "*{box-sizing:border-box}\n"
        "body{font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",sans-serif;margin:0 auto;max-width:74rem;padding:2rem 1.25rem;color:var(--text);"
        "background:var(--page)}\n"
        "h1{font-size:1.6rem;line-height:1.25;margin:0;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:2rem 0 .5rem}\n"
        "h1 em{font:600 .85rem/1 system-ui,sans-serif;color:#fff;border-radius:1rem;padding:.25rem .7rem;vertical-align:middle;background:var(--bad)}"
        "h1 em.good{background:var(--good)}\n"
        ".sub,small{color:var(--soft)}.sub{margin:.3rem 0 1.25rem}small{font-size:.92em;font-variant-numeric:tabular-nums}\n"
        ".bad{background:var(--bad-card);border-left:4px solid var(--bad);border-radius:6px;padding:.7rem 1rem;margin:0 0 .75rem;overflow-wrap:anywhere}"
        ".bad b{color:var(--bad)}.bad p{margin:.15rem 0}\n"
        ".time,details{background:var(--card);border:1px solid var(--line);border-radius:8px}.time{padding:.4rem 1rem .8rem;overflow:hidden}\n"
        ".lane{display:grid;grid-template-columns:var(--name) 1fr;border-top:1px solid var(--line)}.lane.axis{border:0}\n"
        ".lane>b{font-weight:600;padding:.45rem .75rem .45rem 0;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}\n"
        ".bars{min-width:0;padding:.4rem 0;background:repeating-linear-gradient(90deg,var(--line) 0 1px,transparent 1px var(--tick))}\n"
        ".axis .bars{position:relative;height:1.6rem;background:none;font-size:.8rem;color:var(--soft)}"
        ".axis span{position:absolute;white-space:nowrap;transform:translateX(-50%)}.axis span:first-child{transform:none}\n"
        ".bar{position:relative;height:1.45rem}.bar i{position:absolute;top:.2rem;bottom:.2rem;min-width:3px;border-radius:3px;background:var(--done)}\n"
        ".kept i{background:var(--kept)}.open i{background:var(--open)}.failed i{background:var(--bad)}.skipped i{background:var(--kept)}"
        ".failed span,.failed small{color:var(--bad);font-weight:600}.skipped span{color:var(--soft)}\n"
        ".bar span{position:absolute;white-space:nowrap;font-size:.82rem;line-height:1.45rem;padding:0 .45rem}"
        ".bar span.in,.bar span.in small{color:#fff;font-weight:400}\n"
        "details{margin:0 0 .4rem}summary{cursor:pointer;padding:.45rem 1rem;overflow-wrap:anywhere}"
        "pre{margin:0;padding:.5rem 1rem .8rem;border-top:1px solid var(--line);white-space:pre-wrap;overflow-wrap:anywhere;font:.82rem/1.6 "
        "ui-monospace,monospace}\n"
        "@media(max-width:44rem){body{padding:1rem .75rem}.lane{grid-template-columns:1fr}.lane>b{padding:.4rem 0 0}.lane.axis>b{display:none}"
        ".time{padding:.4rem .75rem .8rem}.axis span:nth-child(even){display:none}}\n"
        "@media print{body{background:none}.bar i,h1 em{print-color-adjust:exact;-webkit-print-color-adjust:exact}}\n";

#endif
