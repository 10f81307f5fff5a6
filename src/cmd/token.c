/* token: creates, lists and deletes bootstrap tokens (cluster/certs/token.h). */
#include "cluster/certs/token.h"
#include "cmd/reach.h"

static const char *token_text_of(const json_t *o, const char *key)
{
        return json_string_value(json_object_get(o, key));
}

static int create(struct reach *r, const struct options *o, struct error *err)
{
        const struct token_wish wish = { .ttl = o->ttl,
                .user = o->user,
                .file = o->token_file,
                .control_plane = o->control_plane };
        json_t *made = NULL;
        int e = token_create(&r->site, &wish, &made, err);
        if (e == 0 && cmd_json(o))
                print_json(made, JSON_INDENT(2));
        else if (e == 0)
                print("%s\n", token_text_of(made, "join"));
        json_decref(made);
        return e;
}

static void print_tokens(const json_t *all)
{
        const json_t *t;
        size_t i;
        print("%-8s%-22s%-16s%s\n", "ID", "EXPIRES", "USER", "DESCRIPTION");
        json_array_foreach(all, i, t)
        {
                const char *expires = token_text_of(t, "expires"), *user = token_text_of(t, "user");
                print("%-8s%-22s%-16s%s\n", token_text_of(t, "id"), *expires ? expires : "never",
                        user ? user : "-", token_text_of(t, "description"));
        }
}

static int list_tokens(struct reach *r, const struct options *o, struct error *err)
{
        json_t *all = NULL;
        int e = token_list(&r->site, &all, err);
        if (e == 0 && cmd_json(o))
                print_json(all, JSON_INDENT(2));
        else if (e == 0)
                print_tokens(all);
        json_decref(all);
        return e;
}

static int delete_token(struct reach *r, const struct options *o, struct error *err)
{
        const char *id = o->args.n > 1 ? o->args.v[1] : "";
        int e = token_delete(&r->site, id, err);
        if (e == 0)
                print("token %.6s was deleted\n", id);
        return e;
}

int cmd_token(const struct options *o, struct error *err)
{
        static const struct {
                const char *name;
                int (*run)(struct reach *r, const struct options *o, struct error *err);
                size_t args;
        } actions[] = { { "create", create, 1 }, { "list", list_tokens, 1 },
                { "delete", delete_token, 2 } };
        size_t i = 0;
        while (i < ARRAY_SIZE(actions) && !streq(actions[i].name, o->args.v[0]))
                i++;
        if (i == ARRAY_SIZE(actions))
                return -EINVAL; /* options_parse refused every other word */
        if (actions[i].run == create && o->args.n > 1) {
                error_set(err, EINVAL, EXIT_USAGE,
                        "'slipway token create' takes no token on its command line, where every process of this computer sees it");
                return error_hint(err,
                        "put it into a file and name that with --token-file, or use --token-file - and standard input");
        }
        if (o->args.n > actions[i].args) {
                error_set(err, EINVAL, EXIT_USAGE,
                        "'slipway token %s' does not take the argument '%s'", actions[i].name,
                        o->args.v[actions[i].args]);
                return error_hint(err, "see 'slipway help token'");
        }
        struct reach r CLEANUP(reach_release) = { 0 };
        int e = reach_api(&r, o, err);
        return e < 0 ? e : actions[i].run(&r, o, err);
}
