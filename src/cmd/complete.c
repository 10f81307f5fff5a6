/* completion: scripts for three shells, from verb_table and option_table. */
#include "cmd/options.h"

static void bash_values(struct str *s, const struct option_row *row)
{
        str_addf(s, "    --%s", row->name);
        if (row->letter)
                str_addf(s, "|-%c", row->letter);
        if (row->complete == COMPLETE_WORDS)
                str_addf(
                        s, ") COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", row->words);
        else if (row->complete == COMPLETE_DIR)
                str_add(s, ") COMPREPLY=($(compgen -d -- \"$cur\")); return ;;\n");
        else if (row->complete == COMPLETE_FILE)
                str_add(s, ") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n");
        else
                str_add(s, ") return ;;\n");
}

static void complete_bash(struct str *s)
{
        str_add(s,
                "_slipway() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb= w\n  COMPREPLY=()\n  case $prev in\n");
        for (size_t i = 0; i < option_count; i++)
                if (option_table[i].name[0] && option_table[i].type != OPT_FLAG)
                        bash_values(s, &option_table[i]);
        str_add(s, "  esac\n  for w in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do case $w in");
        for (size_t i = 0; i < verb_count; i++)
                str_addf(s, "%s%s", i ? "|" : " ", verb_table[i].name);
        str_add(s, ") verb=$w; break ;; esac; done\n  case $verb in\n");
        for (size_t i = 0; i <= verb_count; i++) {
                const struct verb *v = i < verb_count ? &verb_table[i] : NULL;
                str_addf(s, "    %s) w='", v ? v->name : "*");
                for (size_t j = 0; !v && j < verb_count; j++)
                        str_addf(s, "%s ", verb_table[j].name);
                if (v && v->arg_words)
                        str_addf(s, "%s ", v->arg_words);
                for (size_t j = 0; j < option_count; j++)
                        if (option_applies(&option_table[j], v))
                                str_addf(s, "--%s ", option_table[j].name);
                str_add(s, "' ;;\n");
        }
        str_add(s,
                "  esac\n  COMPREPLY=($(compgen -W \"$w\" -- \"$cur\"))\n}\ncomplete -F _slipway slipway\n");
}

/* A word for zsh's _arguments, escaped: brackets, colons and quotes would end it. */
static void zsh_text(struct str *s, const char *text)
{
        for (; *text; text++) {
                if (strchr("[]:\\", *text))
                        str_addc(s, '\\');
                if (*text == '\'')
                        str_add(s, "'\\'");
                str_addc(s, *text);
        }
}

static void zsh_option(struct str *s, const struct option_row *row, const struct verb *v)
{
        const char *many = row->type == OPT_LIST ? "*" : "";
        for (int letter = row->letter ? 1 : 0; letter >= 0; letter--) {
                if (letter)
                        str_addf(s, " \\\n      '%s-%c[", many, row->letter);
                else
                        str_addf(s, " \\\n      '%s--%s[", many, row->name);
                zsh_text(s, option_help(row, v));
                str_add(s, "]");
                if (row->type != OPT_FLAG) {
                        str_addf(s, ":%s:", row->value);
                        if (row->complete == COMPLETE_WORDS)
                                str_addf(s, "(%s)", row->words);
                        else if (row->complete != COMPLETE_NONE)
                                str_add(s, row->complete == COMPLETE_DIR ? "_files -/" : "_files");
                }
                str_add(s, "'");
        }
}

static void complete_zsh(struct str *s)
{
        str_add(s, "#compdef slipway\n_slipway() {\n  local -a verbs=(\n");
        for (size_t i = 0; i < verb_count; i++) {
                str_addf(s, "    '%s:", verb_table[i].name);
                zsh_text(s, verb_table[i].summary);
                str_add(s, "'\n");
        }
        str_add(s,
                "  )\n  if (( CURRENT == 2 )); then _describe verb verbs; return; fi\n  case $words[2] in\n");
        for (size_t i = 0; i < verb_count; i++) {
                str_addf(s, "    %s) shift words; (( CURRENT-- )); _arguments", verb_table[i].name);
                for (size_t j = 0; j < option_count; j++)
                        if (option_applies(&option_table[j], &verb_table[i]))
                                zsh_option(s, &option_table[j], &verb_table[i]);
                if (verb_table[i].arg_words)
                        str_addf(s, " \\\n      '1:argument:(%s)'", verb_table[i].arg_words);
                str_add(s, " ;;\n");
        }
        str_add(s,
                "  esac\n}\nif [[ $funcstack[1] == _slipway ]]; then _slipway \"$@\"; else compdef _slipway slipway; fi\n");
}

static void fish_quoted(struct str *s, const char *text)
{
        str_addc(s, '\'');
        for (; *text; text++) {
                if (*text == '\'' || *text == '\\')
                        str_addc(s, '\\');
                str_addc(s, *text);
        }
        str_addc(s, '\'');
}

static void fish_option(struct str *s, const struct option_row *row, const char *condition)
{
        str_addf(s, "complete -c slipway -n '%s' -l %s", condition, row->name);
        if (row->letter)
                str_addf(s, " -s %c", row->letter);
        if (row->complete == COMPLETE_WORDS)
                str_addf(s, " -x -a '%s'", row->words);
        else if (row->type != OPT_FLAG)
                str_add(s, row->complete == COMPLETE_DIR ? " -x -a '(__fish_complete_directories)'"
                           : row->complete == COMPLETE_FILE ? " -r -F"
                                                            : " -x");
        str_add(s, " -d ");
        fish_quoted(s, row->help);
        str_addc(s, '\n');
}

static void complete_fish(struct str *s)
{
        str_add(s, "complete -c slipway -f\n");
        for (size_t i = 0; i < verb_count; i++) {
                str_addf(s, "complete -c slipway -n __fish_use_subcommand -a %s -d ",
                        verb_table[i].name);
                fish_quoted(s, verb_table[i].summary);
                str_addc(s, '\n');
                char *in CLEANUP(free_p) =
                        xasprintf("__fish_seen_subcommand_from %s", verb_table[i].name);
                if (verb_table[i].arg_words)
                        str_addf(s, "complete -c slipway -n '%s' -a '%s'\n", in,
                                verb_table[i].arg_words);
                for (size_t j = 0; j < option_count; j++)
                        if (option_applies(&option_table[j], &verb_table[i]) &&
                                !option_applies(&option_table[j], NULL))
                                fish_option(s, &option_table[j], in);
        }
        for (size_t j = 0; option_table[j].name[0]; j++)
                fish_option(s, &option_table[j], "true");
}

static int write_completion(const char *shell, struct str *out)
{
        static const struct {
                const char *name;
                void (*write)(struct str *);
        } shells[] = { { "bash", complete_bash }, { "zsh", complete_zsh },
                { "fish", complete_fish } };
        for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
                if (streq(shells[i].name, shell)) {
                        shells[i].write(out);
                        return 0;
                }
        return -EINVAL;
}

int cmd_completion(const struct options *o, struct error *err)
{
        struct str s CLEANUP(str_release) = { 0 };
        if (write_completion(o->args.v[0], &s) < 0)
                return -EINVAL; /* options_parse refused every other word */
        print_text(stdout, str_text(&s));
        return EXIT_OK;
}
