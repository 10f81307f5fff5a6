#include <time.h>

#include "base/embed.h"
#include "base/file.h"
#include "base/utf8.h"
#include "ui/report.h"

extern struct embed report_style; /* report.css */

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

#define CHANGES_MAX 20000 /* shown; the journal has all of them */

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

/* Text from nodes and files, escaped: it can neither be markup nor hide the text beside it. */
static void report_add_text(struct str *s, const char *text)
{
        static const char *const names[] = {
                ['<'] = "&lt;", ['>'] = "&gt;", ['&'] = "&amp;", ['"'] = "&quot;", ['\''] = "&#39;"
        };
        struct str clean CLEANUP(str_release) = { 0 };
        text_harmless(&clean, text ? text : "", SIZE_MAX);
        for (const char *p = str_text(&clean); *p; p++) {
                unsigned char c = (unsigned char)*p;
                if (c < ARRAY_SIZE(names) && names[c])
                        str_add(s, names[c]);
                else
                        str_addc(s, *p);
        }
}

static int64_t length_of(const struct run *r)
{
        int64_t end = 1;
        for (const struct step *s = r->first; s; s = s->next)
                if (s->ended > end)
                        end = s->ended;
        return end;
}

static double percent(int64_t ms, int64_t whole) { return 100.0 * (double)ms / (double)whole; }

static void report_add_seconds(struct str *out, int64_t ms)
{
        if (ms < 60000)
                str_addf(out, "%.1f s", (double)ms / 1000);
        else
                str_addf(out, "%" PRId64 " min %02" PRId64 " s", ms / 60000, ms / 1000 % 60);
}

/* The label is to the right of its bar, to the left if there is no room, or inside it if there is
 * none on either side. */
static void add_bar(struct str *out, const struct step *s, int64_t whole)
{
        static const char *const classes[] = { "skipped", "open", "done", "kept", "failed",
                "skipped" };
        static const char *const words[] = { "not started", "interrupted", "", "unchanged",
                "failed", "skipped" };
        int64_t began = s->began >= 0   ? s->began
                        : s->ended >= 0 ? s->ended
                                        : whole,
                ended = s->ended >= 0 ? s->ended : whole;
        double left = percent(began, whole), width = percent(ended - began, whole);
        str_addf(out, "<div class=\"bar %s\" title=\"", classes[s->state]);
        report_add_text(out, s->doing);
        str_addf(out, "\"><i style=\"left:%.2f%%;width:%.2f%%\"></i>", left, width);
        if (left + width > 60 && left > 20)
                str_addf(out, "<span style=\"right:%.2f%%\">", 100 - left);
        else if (left + width > 60)
                str_addf(out, "<span class=\"in\" style=\"left:%.2f%%\">", left);
        else
                str_addf(out, "<span style=\"left:%.2f%%\">", left + width);
        report_add_text(out, s->name);
        str_add(out, " <small>");
        if (s->began >= 0)
                report_add_seconds(out, ended - began);
        str_addf(out, "%s%s</small></span></div>", s->began >= 0 && *words[s->state] ? ", " : "",
                words[s->state]);
}

/* Lines at 1, 2 or 5 times a power of ten, at most ten of them. */
static int64_t tick_of(int64_t whole)
{
        static const int64_t ticks[] = { 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 30000,
                60000, 120000, 300000, 600000, 1800000, 3600000 };
        for (size_t i = 0; i < ARRAY_SIZE(ticks); i++)
                if (whole / ticks[i] <= 10)
                        return ticks[i];
        return whole / 10;
}

static void add_axis(struct str *out, int64_t whole)
{
        int64_t tick = tick_of(whole);
        str_add(out, "<div class=\"lane axis\"><b></b><div class=\"bars\">");
        for (int64_t t = 0; t <= whole; t += tick)
                if (t % 1000 || tick < 1000)
                        str_addf(out, "<span style=\"left:%.2f%%\">%.1f s</span>",
                                percent(t, whole), (double)t / 1000);
                else if (tick < 60000)
                        str_addf(out, "<span style=\"left:%.2f%%\">%" PRId64 " s</span>",
                                percent(t, whole), t / 1000);
                else
                        str_addf(out, "<span style=\"left:%.2f%%\">%" PRId64 " min</span>",
                                percent(t, whole), t / 60000);
        str_add(out, "</div></div>\n");
}

/* What the colours mean, for readers who see a report for the first time. */
static void add_legend(struct str *out)
{
        static const struct {
                const char *class, *word;
        } kinds[] = { { "done", "done" }, { "kept", "unchanged or skipped" },
                { "open", "interrupted" }, { "failed", "failed" } };
        str_add(out,
                "<h2>Steps</h2>\n<p class=\"sub\">Each bar shows when a step ran and how long it took.");
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
                str_addf(out, " <span class=\"key %s\"><i></i>%s</span>", kinds[i].class,
                        kinds[i].word);
        str_add(out, "</p>\n");
}

static bool same_lane(const struct step *a, const struct step *b)
{
        return a->node == b->node || (a->node && b->node && streq(a->node, b->node));
}

/* One lane a node, in the order they first appear; the cluster's own first. */
static void add_lanes(struct str *out, const struct run *r)
{
        int64_t whole = length_of(r);
        str_addf(out, "<section class=\"time\" style=\"--tick:%.4f%%\">\n",
                percent(tick_of(whole), whole));
        add_axis(out, whole);
        for (const struct step *lane = r->first; lane; lane = lane->next) {
                bool seen = false;
                for (const struct step *s = r->first; s != lane && !seen; s = s->next)
                        seen = same_lane(s, lane);
                if (seen)
                        continue;
                str_add(out, "<div class=\"lane\"><b>");
                report_add_text(out, lane->node ? lane->node : "the cluster");
                str_add(out, "</b><div class=\"bars\">");
                for (const struct step *s = lane; s; s = s->next)
                        if (same_lane(s, lane))
                                add_bar(out, s, whole);
                str_add(out, "</div></div>\n");
        }
        str_add(out, "</section>\n");
}

static void add_step_name(struct str *out, const struct step *s)
{
        report_add_text(out, s->node ? s->node : "the cluster");
        str_add(out, ": ");
        report_add_text(out, s->name);
}

static void add_failures(struct str *out, const struct run *r)
{
        for (const struct step *s = r->first; s; s = s->next) {
                if (s->state != STEP_FAILED)
                        continue;
                str_add(out, "<div class=\"bad\"><b>");
                add_step_name(out, s);
                str_add(out, "</b><p>");
                report_add_text(out, s->err.message);
                str_add(out, "</p>");
                if (s->err.hint) {
                        str_add(out, "<p class=\"sub\">");
                        report_add_text(out, s->err.hint);
                        str_add(out, "</p>");
                }
                str_add(out, "</div>\n");
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
                str_addf(out, " <small>%zu</small></summary><pre>", n);
                for (const struct change *c = p->first; c; c = c->next)
                        if (c->step == s) {
                                report_add_text(out, c->text);
                                str_addc(out, '\n');
                        }
                str_add(out, "</pre></details>\n");
        }
        if (p->changes > CHANGES_MAX)
                str_addf(
                        out, "<p>… and %zu more: see the journal.</p>\n", p->changes - CHANGES_MAX);
}

static void add_title(struct str *out, const struct run *r)
{
        str_add(out, "slipway ");
        report_add_text(out, r->verb);
        str_addc(out, ' ');
        report_add_text(out, r->cluster);
}

static void add_head(struct str *out, const struct report *p, const char *result)
{
        const struct run *r = p->run;
        char when[40];
        time_t t = (time_t)(r->wall / 1000);
        struct tm tm;
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&t, &tm));
        str_add(out,
                "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"><title>");
        add_title(out, r);
        str_addf(out, ": %s</title>\n<style>%s</style></head>\n<body>\n<h1>", result,
                embed_text(&report_style, report_style.files));
        add_title(out, r);
        str_addf(out, " <em class=\"%s\">%s</em></h1>\n<p class=\"sub\">%s · ",
                streq(result, "done") ? "good" : "poor", result, when);
        report_add_seconds(out, length_of(r));
        str_addf(out, " · %zu steps · %zu changes · slipway %s</p>\n", r->count, p->changes,
                SLIPWAY_VERSION);
}

int report_write(struct report *p, const char *path, const char *result, struct error *err)
{
        struct str out CLEANUP(str_release) = { 0 };
        add_head(&out, p, result);
        add_failures(&out, p->run);
        add_legend(&out);
        add_lanes(&out, p->run);
        str_add(&out, "<h2>Changes</h2>\n");
        if (!p->changes)
                str_addf(&out, "<p class=\"sub\">%s</p>\n",
                        streq(result, "done") ? "Nothing: everything was unchanged." : "Nothing.");
        add_changes(&out, p);
        str_add(&out, "</body></html>\n");
        free(p);
        if (!path)
                return -err->code;
        return file_write(path, str_text(&out), out.len, 0644, 0, NULL, err);
}
