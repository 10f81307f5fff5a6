#include <time.h>

#include "base/file.h"
#include "base/str.h"
#include "ui/report.h"

struct change {
        const struct step *step;
        const char *text;
        struct change *next;
};

struct report {
        struct run *run;
        struct change *first, *last;
        size_t changes;
};

#define CHANGES_MAX 20000 /* kept; a report for people ends somewhere */

static void on_change(struct run *r, struct step *s, const char *text, void *arg)
{
        struct report *p = arg;
        if (p->changes++ >= CHANGES_MAX)
                return;
        struct change *c = arena_new(r->arena, struct change);
        *c = (struct change){ .step = s, .text = arena_strdup(r->arena, text) };
        if (p->last)
                p->last->next = c;
        else
                p->first = c;
        p->last = c;
}

struct report *report_observe(struct run *r)
{
        struct report *p = xcalloc(1, sizeof(*p));
        p->run = r;
        run_observe(r, &(struct run_observer){ .on_change = on_change, .arg = p });
        return p;
}

static void add_text(struct str *s, const char *text)
{
        for (; text && *text; text++) {
                static const char *const names[] = { ['<'] = "&lt;", ['>'] = "&gt;", ['&'] = "&amp;", ['"'] = "&quot;", ['\''] = "&#39;" };
                unsigned char c = (unsigned char)*text;
                if (c < ARRAY_SIZE(names) && names[c])
                        str_add(s, names[c]);
                else if (c >= 0x20)
                        str_addc(s, (char)c);
        }
}

static const char style[] =
        "body{font:14px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1b2733;background:#fff}"
        "h1{font-size:1.4rem;margin-bottom:0}p.sub{color:#5b6b7a;margin-top:.2rem}"
        ".lane{display:grid;grid-template-columns:10rem 1fr;align-items:start;border-top:1px solid #e3e8ed;padding:.25rem 0}"
        ".lane>b{font-weight:600;overflow:hidden;text-overflow:ellipsis;white-space:nowrap;padding-right:.5rem}.bars{display:grid;gap:2px}"
        ".bar{position:relative;height:1.35rem;background:#f6f8fa;border-radius:3px}"
        ".bar i{position:absolute;top:0;bottom:0;border-radius:3px;min-width:3px;background:#3b82c4}"
        ".kept i{background:#b7c4d0}.failed i{background:#c8372d}.skipped i{background:#e3e8ed}"
        ".bar span{position:absolute;top:.05rem;white-space:nowrap;font-size:.8rem;padding:0 .4rem}"
        ".axis{display:flex;justify-content:space-between;color:#5b6b7a;font-size:.8rem;margin-left:10rem}"
        "details{border-top:1px solid #e3e8ed;padding:.4rem 0}summary{cursor:pointer}pre{margin:.4rem 0 .4rem 1rem;white-space:pre-wrap;font-size:.8rem}"
        ".bad{color:#c8372d}@media(prefers-color-scheme:dark){body{background:#12181f;color:#dbe4ec}.bar{background:#1b242e}.lane,details{border-color:#2a3642}"
        "}";

static int64_t length_of(const struct run *r)
{
        int64_t end = 1;
        for (const struct step *s = r->first; s; s = s->next)
                if (s->ended > end)
                        end = s->ended;
        return end;
}

static void add_bar(struct str *out, const struct step *s, int64_t whole)
{
        static const char *const classes[] = { "skipped", "", "", "kept", "failed", "skipped" };
        int64_t began = s->began >= 0 ? s->began : s->ended >= 0 ? s->ended : 0, ended = s->ended >= 0 ? s->ended : whole;
        double left = 100.0 * (double)began / (double)whole, width = 100.0 * (double)(ended - began) / (double)whole;
        str_addf(out, "<div class=\"bar %s\"><i style=\"left:%.2f%%;width:%.2f%%\"></i><span style=\"%s:%.2f%%\">", classes[s->state], left, width,
                left > 70 ? "right" : "left", left > 70 ? 100 - left : left + (width < 12 ? width : 0));
        add_text(out, s->name);
        str_addf(out, " %.1f s</span></div>", (double)(ended - began) / 1000);
}

/* One lane a node, in the order they first appear; the cluster's own first. */
static void add_lanes(struct str *out, const struct run *r)
{
        int64_t whole = length_of(r);
        for (const struct step *lane = r->first; lane; lane = lane->next) {
                bool seen = false;
                for (const struct step *s = r->first; s != lane && !seen; s = s->next)
                        seen = s->node == lane->node || (s->node && lane->node && streq(s->node, lane->node));
                if (seen)
                        continue;
                str_add(out, "<div class=\"lane\"><b>");
                add_text(out, lane->node ? lane->node : "the cluster");
                str_add(out, "</b><div class=\"bars\">");
                for (const struct step *s = lane; s; s = s->next)
                        if (s->node == lane->node || (s->node && lane->node && streq(s->node, lane->node)))
                                add_bar(out, s, whole);
                str_add(out, "</div></div>\n");
        }
        str_addf(out, "<div class=\"axis\"><span>0 s</span><span>%.1f s</span><span>%.1f s</span></div>\n", (double)whole / 2000, (double)whole / 1000);
}

static void add_step_name(struct str *out, const struct step *s)
{
        add_text(out, s->node ? s->node : "the cluster");
        str_add(out, ": ");
        add_text(out, s->name);
}

static void add_failures(struct str *out, const struct run *r)
{
        for (const struct step *s = r->first; s; s = s->next) {
                if (s->state != STEP_FAILED)
                        continue;
                str_add(out, "<p class=\"bad\"><b>");
                add_step_name(out, s);
                str_add(out, "</b>: ");
                add_text(out, s->err.message);
                if (s->err.hint) {
                        str_add(out, "<br>");
                        add_text(out, s->err.hint);
                }
                str_add(out, "</p>\n");
        }
}

static void add_changes(struct str *out, const struct report *p)
{
        for (const struct step *s = p->run->first; s; s = s->next) {
                size_t n = 0;
                for (const struct change *c = p->first; c; c = c->next)
                        n += c->step == s;
                if (!n)
                        continue;
                str_add(out, "<details><summary>");
                add_step_name(out, s);
                str_addf(out, " changed %zu</summary><pre>", n);
                for (const struct change *c = p->first; c; c = c->next)
                        if (c->step == s) {
                                add_text(out, c->text);
                                str_addc(out, '\n');
                        }
                str_add(out, "</pre></details>\n");
        }
        if (p->changes > CHANGES_MAX)
                str_addf(out, "<p>… and %zu more: see the journal.</p>\n", p->changes - CHANGES_MAX);
}

int report_write(struct report *p, const char *path, const char *result, struct error *err)
{
        struct str out CLEANUP(str_release) = { 0 };
        const struct run *r = p->run;
        char when[40];
        time_t t = (time_t)(r->began / 1000);
        struct tm tm;
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&t, &tm));
        str_add(&out, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>slipway ");
        add_text(&out, r->verb);
        str_addc(&out, ' ');
        add_text(&out, r->cluster);
        str_addf(&out, "</title><style>%s</style>\n<h1>", style);
        add_text(&out, r->verb);
        str_addc(&out, ' ');
        add_text(&out, r->cluster);
        str_addf(&out, ": %s</h1><p class=\"sub\">%s, %.1f s, %zu steps, %zu changes</p>\n", result, when, (double)length_of(r) / 1000, r->count, p->changes);
        add_failures(&out, r);
        add_lanes(&out, r);
        str_add(&out, "<h2>What changed</h2>\n");
        if (!p->changes)
                str_add(&out, "<p>Nothing: everything was so already.</p>\n");
        add_changes(&out, p);
        str_add(&out, "</html>\n");
        free(p);
        return file_write(path, str_text(&out), out.len, 0644, 0, NULL, err);
}
