/* help: the overview, the help of one verb and the man page, from verb_table and option_table. */
#include "cmd/options.h"

static const struct {
        enum exit_status status;
        const char *meaning;
} exit_rows[] = {
        { EXIT_OK, "success; for status: the cluster is healthy" },
        { EXIT_INTERNAL, "an error on this computer: disk, memory, a child process" },
        { EXIT_USAGE, "the command line is invalid, or the answer was no" },
        { EXIT_CONFIG, "the cluster's file has errors" },
        { EXIT_PREFLIGHT, "a preflight check failed, or the plan was refused" },
        { EXIT_UNREACHABLE,
                "a machine, the API or a cloud cannot be reached, or there are no credentials for the cloud" },
        { EXIT_STEP, "a step failed on a node or in the cluster" },
        { EXIT_UNHEALTHY, "the cluster is not healthy, or a certificate has expired" },
        { EXIT_STATE,
                "the state directory is locked, damaged or of another cluster; the cluster does not exist yet; or a saved plan is outdated" },
        { EXIT_CHANGES, "for plan --exit-code: there is something to do" },
};

/* Appends `text` wrapped at about 78 columns, every line indented. */
static void add_folded(struct str *s, const char *text, unsigned indent)
{
        size_t col = 0;
        for (const char *p = text; *p;) {
                size_t n = strcspn(p, " ");
                if (col && col + n + 1 > 78 - indent) {
                        str_addc(s, '\n');
                        col = 0;
                }
                str_addf(s, "%*s%.*s", col ? 1 : (int)indent, "", (int)n, p);
                col += n + (col ? 1 : 0);
                p += n;
                p += strspn(p, " ");
        }
        str_addc(s, '\n');
}

static void help_add_option(struct str *s, const struct option_row *row, const struct verb *v)
{
        char left[64];
        snprintf(left, sizeof(left), "%s%c%s --%s%s%s", row->letter ? "-" : " ",
                row->letter ? row->letter : ' ', row->letter ? "," : " ", row->name,
                row->value ? " " : "", row->value ? row->value : "");
        str_addf(s, "  %s\n", left);
        add_folded(s, option_help(row, v), 8);
}

void help_overview(struct str *s)
{
        str_add(s,
                "slipway creates and operates highly available Kubernetes clusters from one cluster.yaml.\n\nusage: slipway VERB [OPTION]... "
                "[ARGUMENT]...\n\nverbs:\n");
        for (size_t i = 0; i < verb_count; i++)
                str_addf(s, "  %-12s %s\n", verb_table[i].name, verb_table[i].summary);
        str_add(s, "\noptions of every verb:\n");
        for (size_t i = 0; option_table[i].name[0]; i++)
                help_add_option(s, &option_table[i], NULL);
        str_add(s,
                "\n'slipway help VERB' explains a verb; 'slipway help --man' prints the man page, with the exit statuses.\n"
                "Start with: slipway init && slipway check\n");
}

void help_verb(const struct verb *v, struct str *s)
{
        str_addf(s, "slipway %s: %s\n\nusage: slipway %s [OPTION]...%s%s\n", v->name, v->summary,
                v->name, *v->args ? " " : "", v->args);
        if (v->help) {
                str_addc(s, '\n');
                add_folded(s, v->help, 0);
        }
        for (int global = 0; global < 2; global++) {
                bool any = false;
                for (size_t i = 0; i < option_count; i++) {
                        const struct option_row *row = &option_table[i];
                        if (!option_applies(row, v) || option_applies(row, NULL) != (global == 1))
                                continue;
                        if (!any)
                                str_add(s, global ? "\noptions of every verb:\n" : "\noptions:\n");
                        any = true;
                        help_add_option(s, row, v);
                }
        }
}

/* ---- man page ---- */

/* Text for roff: lines must not start a request, and - becomes a minus. */
static void add_roff(struct str *s, const char *text)
{
        if (*text == '.' || *text == '\'')
                str_add(s, "\\&");
        for (; *text; text++) {
                if (*text == '\\')
                        str_add(s, "\\e");
                else if (*text == '-')
                        str_add(s, "\\-");
                else
                        str_addc(s, *text);
        }
}

static void man_option(struct str *s, const struct option_row *row, const struct verb *v)
{
        str_add(s, ".TP\n\\fB");
        if (row->letter)
                str_addf(s, "\\-%c\\fR, \\fB", row->letter);
        str_add(s, "\\-\\-");
        add_roff(s, row->name);
        str_addf(s, "\\fR%s%s%s\n", row->value ? " \\fI" : "", row->value ? row->value : "",
                row->value ? "\\fR" : "");
        add_roff(s, option_help(row, v));
        str_addc(s, '\n');
}

static void man_verb(struct str *s, const struct verb *v)
{
        str_addf(s, ".SS slipway %s %s\n", v->name, v->args);
        add_roff(s, v->summary);
        str_add(s, ".\n");
        if (v->help) {
                add_roff(s, v->help);
                str_addc(s, '\n');
        }
        for (size_t i = 0; i < option_count; i++)
                if (option_applies(&option_table[i], v) && !option_applies(&option_table[i], NULL))
                        man_option(s, &option_table[i], v);
}

static void help_man(struct str *s)
{
        str_addf(s, ".TH SLIPWAY 1 \"\" \"slipway %s\" \"User Commands\"\n", SLIPWAY_VERSION);
        str_add(s,
                ".SH NAME\nslipway \\- create and operate highly available Kubernetes clusters\n"
                ".SH SYNOPSIS\n.B slipway\n.I VERB\n[\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]...\n"
                ".SH DESCRIPTION\nslipway reads a cluster.yaml, creates the cluster's certificates and every node's files, and installs them on the nodes. "
                "docs/config.md describes the file; \\fBslipway schema\\fR prints its JSON Schema.\n.SH VERBS\n");
        for (size_t i = 0; i < verb_count; i++)
                man_verb(s, &verb_table[i]);
        str_add(s, ".SH OPTIONS\n");
        for (size_t i = 0; option_table[i].name[0]; i++)
                man_option(s, &option_table[i], NULL);
        str_add(s, ".SH EXIT STATUS\n");
        for (size_t i = 0; i < ARRAY_SIZE(exit_rows); i++)
                str_addf(s, ".TP\n.B %d\n%s\n", exit_rows[i].status, exit_rows[i].meaning);
        str_add(s,
                ".SH FILES\n.TP\n.I cluster.yaml\nthe description of the cluster\n.TP\n.I .slipway/NAME/\n"
                "the state directory: certificates, keys, the record of nodes and reports, readable by its owner only\n");
}

int cmd_help(const struct options *o, struct error *err)
{
        struct str s CLEANUP(str_release) = { 0 };
        const struct verb *v = o->args.n ? verb_find(o->args.v[0]) : NULL;
        if (o->args.n && !v) {
                error_set(err, EINVAL, EXIT_USAGE, "unknown verb '%s'", o->args.v[0]);
                return error_hint(err, "'slipway --help' lists the verbs");
        }
        if (o->man)
                help_man(&s);
        else if (v)
                help_verb(v, &s);
        else
                help_overview(&s);
        print_text(stdout, str_text(&s));
        return EXIT_OK;
}
