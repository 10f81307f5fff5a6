#include "cmd/options.h"

#define AT(member) offsetof(struct options, member)

/* Options before the empty row are for every verb; the others for verbs that list them. */
const struct option_row option_table[] = {
        { "file", 'f', OPT_LIST, AT(files), "FILE", NULL, COMPLETE_FILE,
                "the cluster's file; may be repeated, and later files are merged over earlier ones (default: cluster.yaml; - is standard input)" },
        { "state", 0, OPT_STRING, AT(state), "DIR", NULL, COMPLETE_DIR,
                "the state directory, with certificates, journal and lock (default: .slipway)" },
        { "output", 'o', OPT_STRING, AT(output), "FORMAT", "text json", COMPLETE_WORDS,
                "the output format of results and problems: text or json" },
        { "help", 'h', OPT_FLAG, AT(help), NULL, NULL, COMPLETE_NONE, "print this help" },
        { "version", 'V', OPT_FLAG, AT(version), NULL, NULL, COMPLETE_NONE, "print the version" },
        { "", 0, OPT_FLAG, 0, NULL, NULL, COMPLETE_NONE, NULL },
        { "dir", 'd', OPT_STRING, AT(dir), "DIR", NULL, COMPLETE_DIR, "the directory to write to" },
        { "format", 0, OPT_STRING, AT(format), "FORMAT", "files user-data cloud-init ignition",
                COMPLETE_WORDS,
                "what to write: files, cloud-init, ignition, or user-data (cloud-init or ignition, as each machine needs) (default: files)" },
        { "node", 'n', OPT_LIST, AT(nodes), "NODE", NULL, COMPLETE_NONE,
                "only this node; may be repeated" },
        { "secrets", 0, OPT_FLAG, AT(secrets), NULL, NULL, COMPLETE_NONE, "include secret files" },
        { "facts", 0, OPT_STRING, AT(facts), "FILE", NULL, COMPLETE_FILE,
                "a JSON file with facts about the machines" },
        { "provider", 'p', OPT_STRING, AT(provider), "NAME", "local ssh openstack aws terraform",
                COMPLETE_WORDS,
                "the provider of machines: local, ssh, openstack, aws or terraform" },
        { "name", 0, OPT_STRING, AT(name), "NAME", NULL, COMPLETE_NONE, "the cluster's name" },
        { "from-kubespray", 0, OPT_STRING, AT(from_kubespray), "DIR", NULL, COMPLETE_DIR,
                "convert the Kubespray inventory in DIR" },
        { "force", 0, OPT_FLAG, AT(force), NULL, NULL, COMPLETE_NONE,
                "continue in a case that is otherwise refused (see 'slipway help VERB')" },
        { "stage", 0, OPT_FLAG, AT(stage), NULL, NULL, COMPLETE_NONE,
                "only send the new programs and images to the nodes; change nothing else" },
        { "crd", 0, OPT_FLAG, AT(crd), NULL, NULL, COMPLETE_NONE,
                "print the CustomResourceDefinition for kubectl apply" },
        { "docs", 0, OPT_FLAG, AT(docs), NULL, NULL, COMPLETE_NONE,
                "print the reference in Markdown" },
        { "lines", 0, OPT_STRING, AT(lines), "N", NULL, COMPLETE_NONE,
                "how many lines to print, from the end (default: 100)" },
        { "follow", 0, OPT_FLAG, AT(follow), NULL, NULL, COMPLETE_NONE, "keep printing new lines" },
        { "merge", 0, OPT_FLAG, AT(merge), NULL, NULL, COMPLETE_NONE,
                "write the entries to your own kubeconfig file" },
        { "oidc", 0, OPT_FLAG, AT(oidc), NULL, NULL, COMPLETE_NONE,
                "print the kubeconfig for logins at the provider of auth.oidc; USER names the entry in the file (default: oidc)" },
        { "kubeconfig", 0, OPT_STRING, AT(kubeconfig), "FILE", NULL, COMPLETE_FILE,
                "the file to merge into (default: the first of $KUBECONFIG, else ~/.kube/config)" },
        { "use", 0, OPT_FLAG, AT(use), NULL, NULL, COMPLETE_NONE,
                "set the current context to this cluster" },
        { "ttl", 0, OPT_STRING, AT(ttl), "TIME", NULL, COMPLETE_NONE,
                "how long the token is valid: 30m, 24h, 7d (default: 24h; with --control-plane 2h, which is also the maximum)" },
        { "token-file", 0, OPT_STRING, AT(token_file), "FILE", NULL, COMPLETE_FILE,
                "a file with the token to create, which only you can read (- is standard input; default: a random token)" },
        { "control-plane", 0, OPT_FLAG, AT(control_plane), NULL, NULL, COMPLETE_NONE,
                "token create: let the machine join as a control plane; the Secret kubeadm-certs exists until the token expires" },
        { "user", 0, OPT_STRING, AT(user), "NAME", NULL, COMPLETE_NONE,
                "the user of auth.users that the token is for; when the user is removed, the token is deleted" },
        { "to", 0, OPT_STRING, AT(to), "FILE", NULL, COMPLETE_FILE, "the snapshot file to write" },
        { "yes", 'y', OPT_FLAG, AT(yes), NULL, NULL, COMPLETE_NONE, "do not ask for confirmation" },
        { "all", 0, OPT_FLAG, AT(all), NULL, NULL, COMPLETE_NONE,
                "every node, also those that need no reboot" },
        { "plan", 0, OPT_STRING, AT(plan), "FILE", NULL, COMPLETE_FILE,
                "carry out exactly the plan saved with 'slipway plan -o json', without asking; refused if the file or the cluster has changed since" },
        { "no-cleanup", 0, OPT_FLAG, AT(no_cleanup), NULL, NULL, COMPLETE_NONE,
                "leave load balancers, volumes and releases as they are, and do not ask the API; they stay in the cloud" },
        { "keep-volumes", 0, OPT_FLAG, AT(keep_volumes), NULL, NULL, COMPLETE_NONE,
                "keep all volumes outside the nodes, whatever their reclaim policy is" },
        { "delete-volumes", 0, OPT_FLAG, AT(delete_volumes), NULL, NULL, COMPLETE_NONE,
                "also delete volumes whose reclaim policy is Retain, if a storage driver made them" },
        { "cleanup-timeout", 0, OPT_STRING, AT(cleanup_timeout), "TIME", NULL, COMPLETE_NONE,
                "how long to wait until load balancers, volumes and releases are deleted: 90s, 5m, 1h (default: 5m)" },
        { "prefix", 0, OPT_STRING, AT(prefix), "PREFIX", NULL, COMPLETE_NONE,
                "list or delete everything with this prefix, of a cluster whose state directory is lost" },
        { "delete", 0, OPT_FLAG, AT(delete), NULL, NULL, COMPLETE_NONE,
                "delete the listed resources, after a confirmation" },
        { "exit-code", 0, OPT_FLAG, AT(exit_code), NULL, NULL, COMPLETE_NONE,
                "exit with status 9 if something would change" },
        { "watch", 'w', OPT_FLAG, AT(watch), NULL, NULL, COMPLETE_NONE,
                "keep watching, and show every change" },
        { "hardening", 0, OPT_FLAG, AT(hardening), NULL, NULL, COMPLETE_NONE,
                "print every CIS control with its result and the reason" },
        { "ask-sudo-password", 0, OPT_FLAG, AT(ask_sudo_password), NULL, NULL, COMPLETE_NONE,
                "ask for the password of sudo on the nodes; the environment variable SLIPWAY_SUDO_PASSWORD sets it without asking" },
        { "key", 0, OPT_STRING, AT(key), "FILE", NULL, COMPLETE_FILE,
                "the ssh key to log in with (default: ssh chooses)" },
        { "ssh-option", 0, OPT_LIST, AT(ssh_options), "OPTION", NULL, COMPLETE_NONE,
                "an option for ssh, as for ssh -o; may be repeated" },
        { "finish", 0, OPT_FLAG, AT(finish), NULL, NULL, COMPLETE_NONE,
                "certs rotate-ca: remove the old service-account key now, without waiting for all tokens to be renewed" },
        { "ssh-config", 0, OPT_FLAG, AT(ssh_config), NULL, NULL, COMPLETE_NONE,
                "print an OpenSSH configuration, for ssh -F" },
        { "ansible", 0, OPT_FLAG, AT(ansible), NULL, NULL, COMPLETE_NONE,
                "print an Ansible inventory in YAML, or with -o json as a dynamic inventory does" },
        { "man", 0, OPT_FLAG, AT(man), NULL, NULL, COMPLETE_NONE, "print the man page" },
};
const size_t option_count = ARRAY_SIZE(option_table);

/* Whether `word` is one of the space-separated `words`. */
static bool word_in(const char *words, const char *word)
{
        size_t n = strlen(word);
        for (const char *p = words; p && *p; p += strcspn(p, " "), p += *p == ' ')
                if (strcspn(p, " ") == n && strncmp(p, word, n) == 0)
                        return true;
        return false;
}

bool option_applies(const struct option_row *row, const struct verb *v)
{
        for (size_t i = 0; option_table[i].name[0]; i++)
                if (row == &option_table[i])
                        return true;
        return row->name[0] && v && word_in(v->options, row->name);
}

const char *option_help(const struct option_row *row, const struct verb *v)
{
        return v && v->force && streq(row->name, "force") ? v->force : row->help;
}

static const struct option_row *find_long(const char *name, size_t n)
{
        for (size_t i = 0; i < option_count; i++)
                if (option_table[i].name[0] && strlen(option_table[i].name) == n &&
                        strncmp(option_table[i].name, name, n) == 0)
                        return &option_table[i];
        return NULL;
}

static const struct option_row *find_letter(char letter)
{
        for (size_t i = 0; i < option_count; i++)
                if (option_table[i].letter && option_table[i].letter == letter)
                        return &option_table[i];
        return NULL;
}

/* Sets one option; `value` is NULL for flags. */
static int set_option(const struct option_row *row, const char *value, struct arena *a,
        struct options *out, struct error *err)
{
        void *at = (char *)out + row->offset;
        if (row->words && !word_in(row->words, value)) {
                error_set(err, EINVAL, EXIT_USAGE, "--%s: unknown value '%s'", row->name, value);
                return error_hint(err, "choose one of: %s", row->words);
        }
        switch (row->type) {
        case OPT_FLAG:
                *(bool *)at = true;
                return 0;
        case OPT_STRING:
                *(const char **)at = value;
                return 0;
        case OPT_LIST:
                strings_add(a, at, value);
                return 0;
        }
        return 0;
}

/* `v`: the verb, if it is before the option. Only options that it has are suggested. */
static int unknown_option(const char *arg, const struct verb *v, struct error *err)
{
        const char *names[ARRAY_SIZE(option_table)];
        size_t n = 0, len = strcspn(arg, "=");
        for (size_t i = 0; i < option_count; i++)
                if (option_applies(&option_table[i], v))
                        names[n++] = option_table[i].name;
        char *word CLEANUP(free_p) = xstrndup(arg, len);
        const char *near = streq(word, "--token")   ? "token-file"
                           : has_prefix(word, "--") ? nearest(word + 2, names, n)
                                                    : NULL;
        error_set(err, EINVAL, EXIT_USAGE, "unknown option %s", word);
        if (near)
                return error_hint(err, "did you mean --%s?", near);
        return error_hint(err, "'slipway help %s' lists %s", v ? v->name : "VERB",
                v ? "its options" : "the options of a verb");
}

/* Parses an argument that starts with a dash; may use the next one as its value. `seen` records
 * which rows were used. */
static int parse_option(char **argv, int argc, int *i, const struct verb *v, struct arena *a,
        struct options *out, bool *seen, struct error *err)
{
        const char *arg = argv[*i], *value = NULL;
        const struct option_row *row;
        if (arg[1] == '-') {
                size_t n = strcspn(arg + 2, "=");
                row = find_long(arg + 2, n);
                value = arg[2 + n] ? arg + 3 + n : NULL;
        } else {
                row = find_letter(arg[1]);
                value = arg[2] ? arg + 2 : NULL;
                /* -hx: letters cannot be combined */
                if (row && row->type == OPT_FLAG && value)
                        row = NULL;
        }
        if (!row)
                return unknown_option(arg, v, err);
        if (row->type == OPT_FLAG && value)
                return error_set(err, EINVAL, EXIT_USAGE, "--%s takes no value", row->name);
        if (row->type != OPT_FLAG && !value) {
                if (*i + 1 >= argc)
                        return error_set(err, EINVAL, EXIT_USAGE, "--%s needs a value: %s",
                                row->name, row->value);
                value = argv[++*i];
        }
        seen[row - option_table] = true;
        return set_option(row, value, a, out, err);
}

static int unknown_verb(const char *word, struct error *err)
{
        const char *names[64];
        size_t n = 0;
        for (size_t i = 0; i < verb_count && n < ARRAY_SIZE(names); i++)
                names[n++] = verb_table[i].name;
        const char *near = nearest(word, names, n);
        error_set(err, EINVAL, EXIT_USAGE, "unknown verb '%s'", word);
        return near ? error_hint(err, "did you mean 'slipway %s'?", near)
                    : error_hint(err, "'slipway --help' lists the verbs");
}

/* The first argument of a verb that takes one of a few words. */
static int unknown_word(const struct verb *v, const char *word, struct error *err)
{
        char *words CLEANUP(free_p) = xstrdup(v->arg_words), *save = NULL;
        const char *names[16], *near;
        size_t n = 0;
        for (char *p = strtok_r(words, " ", &save); p && n < ARRAY_SIZE(names);
                p = strtok_r(NULL, " ", &save))
                names[n++] = p;
        near = nearest(word, names, n);
        error_set(err, EINVAL, EXIT_USAGE, "'slipway %s' does not take the argument '%s'", v->name,
                word);
        return near && *near == *word
                       ? error_hint(err, "did you mean 'slipway %s %s'?", v->name, near)
                       : error_hint(err, "choose one of: %s", v->arg_words);
}

/* Checks that need the verb: unknown options, too few, too many or unknown arguments. */
static int check_verb(
        const struct verb *v, const struct options *o, const bool *seen, struct error *err)
{
        if (o->help || o->version)
                return 0;
        for (size_t i = 0; i < option_count; i++)
                if (seen[i] && !option_applies(&option_table[i], v)) {
                        error_set(err, EINVAL, EXIT_USAGE, "'slipway %s' has no option --%s",
                                v->name, option_table[i].name);
                        return error_hint(err, "'slipway help %s' lists its options", v->name);
                }
        if (o->args.n < (size_t)v->min_args) {
                error_set(err, EINVAL, EXIT_USAGE, "'slipway %s' needs an argument: %s", v->name,
                        v->args);
                return error_hint(err, "see 'slipway help %s'", v->name);
        }
        if (v->max_args >= 0 && o->args.n > (size_t)v->max_args) {
                error_set(err, EINVAL, EXIT_USAGE, "'slipway %s' does not take the argument '%s'",
                        v->name, o->args.v[v->max_args]);
                return error_hint(err, "see 'slipway help %s'", v->name);
        }
        if (v->arg_words && o->args.n && !word_in(v->arg_words, o->args.v[0]))
                return unknown_word(v, o->args.v[0], err);
        return 0;
}

int options_parse(int argc, char **argv, struct arena *a, struct options *out,
        const struct verb **verb, struct error *err)
{
        bool seen[ARRAY_SIZE(option_table)] = { false }, only_args = false;
        *verb = NULL;
        for (int i = 1; i < argc; i++) {
                const char *arg = argv[i];
                int r = 0;
                if (!only_args && streq(arg, "--"))
                        only_args = true;
                else if (!only_args && arg[0] == '-' && arg[1])
                        r = parse_option(argv, argc, &i, *verb, a, out, seen, err);
                else if (*verb)
                        strings_add(a, &out->args, arg);
                else if (!(*verb = verb_find(arg)))
                        r = unknown_verb(arg, err);
                if (r < 0)
                        return r;
        }
        return *verb ? check_verb(*verb, out, seen, err) : 0;
}
