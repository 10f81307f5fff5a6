#include "base/index.h"
#include "base/tree_check.h"

#define LINEAR 16 /* keys of a map that are searched one by one; beyond, an index is made */

/* A list or map that is not closed yet. */
struct frame {
        struct tree *t;
        struct tree *key;    /* read, waits for its value */
        struct tree *merged; /* the value of << */
        struct anchor *anchor;
        size_t start; /* how many values there were before it */
        unsigned height;
        struct index keys;
};

struct anchor {
        struct tree *t; /* NULL while open */
        size_t values;
        unsigned height;
};

struct builder {
        struct arena *arena;
        const struct tree_file *file;
        struct tree *at; /* where it failed */
        struct error *err;
        yaml_parser_t parser;
        struct frame stack[TREE_MAX_DEPTH];
        unsigned depth;
        size_t values, aliased;
        struct tree *root;
        struct index anchors;
};

static void builder_release(struct builder *b)
{
        yaml_parser_delete(&b->parser);
        index_release(&b->anchors);
        for (size_t i = 0; i < TREE_MAX_DEPTH; i++)
                index_release(&b->stack[i].keys);
}

static struct frame *top(struct builder *b) { return b->depth ? &b->stack[b->depth - 1] : NULL; }

static void tree_append(struct tree *parent, struct tree *t)
{
        t->parent = parent;
        t->next = NULL;
        t->index = parent->count++;
        if (parent->last)
                parent->last->next = t;
        else
                parent->first = t;
        parent->last = t;
}

static struct tree *find_key(const struct frame *f, const char *key)
{
        if (f->t->count > LINEAR)
                return index_get(&f->keys, key);
        return (struct tree *)tree_get(f->t, key);
}

static void append_keyed(struct frame *f, struct tree *t)
{
        tree_append(f->t, t);
        if (f->t->count == LINEAR + 1) {
                index_clear(&f->keys);
                for (struct tree *c = f->t->first; c; c = c->next)
                        index_put(&f->keys, c->key, c);
        } else if (f->t->count > LINEAR) {
                index_put(&f->keys, t->key, t);
        }
}

static int too_many(struct builder *b, const struct tree *t)
{
        return tree_fail(b->at, b->err, t->line, t->col, "split it, or use fewer aliases",
                "more than %d values", TREE_MAX_NODES);
}

static int take_key(struct builder *b, struct frame *f, struct tree *t)
{
        if (t->kind != TREE_SCALAR || !*t->text)
                return tree_fail(b->at, b->err, t->line, t->col,
                        "a key is a word; quote it if it means something else to YAML",
                        "a key is %s here", t->kind >= TREE_LIST ? "a list or a map" : "empty");
        const struct tree *before =
                t->plain && streq(t->text, "<<") ? f->merged : find_key(f, t->text);
        if (before)
                return tree_fail(b->at, b->err, t->line, t->col, "keep one of the two",
                        "the key \"%.80s\" is here twice, first on line %u", t->text,
                        before->key_line);
        f->key = t;
        return 0;
}

/* Puts a whole value, or the beginning of a list or map, where it belongs. */
static int place(struct builder *b, struct tree *t, unsigned height)
{
        struct frame *f = top(b);
        if (!f) {
                b->root = t;
                return 0;
        }
        if (height + 1 > f->height)
                f->height = height + 1;
        if (f->t->kind == TREE_LIST) {
                tree_append(f->t, t);
                return 0;
        }
        if (!f->key)
                return take_key(b, f, t);
        const struct tree *key = f->key;
        f->key = NULL;
        t->key = key->text;
        t->key_line = key->line;
        t->key_col = key->col;
        if (key->plain && streq(key->text, "<<")) {
                f->merged = t;
                t->parent = f->t;
        } else {
                append_keyed(f, t);
        }
        return 0;
}

static struct tree *new_value(struct builder *b, enum tree_kind kind, const yaml_event_t *e)
{
        struct tree *t = arena_new(b->arena, struct tree);
        t->kind = kind;
        t->file = b->file;
        t->line = (uint32_t)e->start_mark.line + 1;
        t->col = (uint32_t)e->start_mark.column + 1;
        b->values++;
        return t;
}

/* An anchor's name may be used again: the last one counts. */
static struct anchor *new_anchor(struct builder *b, const yaml_char_t *name)
{
        if (!name)
                return NULL;
        struct anchor *x = index_get(&b->anchors, (const char *)name);
        if (!x) {
                x = arena_new(b->arena, struct anchor);
                index_put(&b->anchors, arena_strdup(b->arena, (const char *)name), x);
        }
        *x = (struct anchor){ 0 };
        return x;
}

enum tag { TAG_NONE, TAG_TEXT, TAG_TYPED };

static int read_tag(
        struct builder *b, const yaml_event_t *e, const yaml_char_t *name, enum tag *out)
{
        static const char *const typed[] = { "int", "bool", "float", "null", "map", "seq",
                "merge" };
        static const char core[] = "tag:yaml.org,2002:";
        const char *tag = (const char *)name;
        *out = TAG_NONE;
        if (!tag)
                return 0;
        *out = TAG_TEXT;
        if (streq(tag, "!") ||
                (has_prefix(tag, core) && (streq(tag + strlen(core), "str") ||
                                                  streq(tag + strlen(core), "timestamp"))))
                return 0;
        *out = TAG_TYPED;
        for (size_t i = 0; has_prefix(tag, core) && i < ARRAY_SIZE(typed); i++)
                if (streq(tag + strlen(core), typed[i]))
                        return 0;
        return tree_fail(b->at, b->err, (uint32_t)e->start_mark.line + 1,
                (uint32_t)e->start_mark.column + 1,
                "remove it, or quote a value that begins with !",
                "the tag %.60s means nothing here", tag);
}

static int on_scalar(struct builder *b, const yaml_event_t *e)
{
        const char *text = (const char *)e->data.scalar.value;
        size_t len = e->data.scalar.length;
        enum tag tag;
        struct tree *t = new_value(b, TREE_SCALAR, e);
        if (memchr(text, 0, len))
                return tree_fail(b->at, b->err, t->line, t->col, NULL,
                        "a value cannot hold a NUL character");
        if (read_tag(b, e, e->data.scalar.tag, &tag) < 0)
                return -EINVAL;
        char *copy = arena_alloc(b->arena, len + 1);
        memcpy(copy, text, len);
        t->text = copy;
        t->plain = tag == TAG_TYPED ||
                   (tag == TAG_NONE && e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE);
        if (t->plain && tree_null_word(copy))
                t->kind = TREE_NULL;
        struct anchor *x = new_anchor(b, e->data.scalar.anchor);
        if (x)
                *x = (struct anchor){ t, 1, 0 };
        return b->values > TREE_MAX_NODES ? too_many(b, t) : place(b, t, 0);
}

static int on_open(struct builder *b, const yaml_event_t *e, enum tree_kind kind,
        const yaml_char_t *anchor, const yaml_char_t *tag_name)
{
        struct tree *t = new_value(b, kind, e);
        enum tag tag;
        if (b->depth == TREE_MAX_DEPTH)
                return tree_fail(b->at, b->err, t->line, t->col,
                        "check the brackets and the indentation",
                        "lists and maps are nested more than %d deep", TREE_MAX_DEPTH);
        if (read_tag(b, e, tag_name, &tag) < 0)
                return -EINVAL;
        if (top(b) && top(b)->t->kind == TREE_MAP && !top(b)->key)
                return take_key(b, top(b), t);
        if (b->values > TREE_MAX_NODES)
                return too_many(b, t);
        if (place(b, t, 0) < 0)
                return -EINVAL;
        struct frame *f = &b->stack[b->depth++];
        *f = (struct frame){ .t = t,
                .height = 1,
                .start = b->values - 1,
                .anchor = new_anchor(b, anchor),
                .keys = f->keys };
        return 0;
}

/* Keys written in the map win over those of <<, and earlier maps over later ones. */
static int merge_map(struct builder *b, struct frame *f, const struct tree *from)
{
        if (from->kind != TREE_MAP)
                return tree_fail(b->at, b->err, from->line, from->col,
                        "write <<: *NAME, where NAME is the anchor of a map",
                        "<< takes a map or a list of maps");
        for (struct tree *c = from->first, *next; c; c = next) {
                next = c->next;
                if (!find_key(f, c->key))
                        append_keyed(f, c);
        }
        return 0;
}

static int merge_keys(struct builder *b, struct frame *f)
{
        struct tree *m = f->merged;
        if (m->kind != TREE_LIST)
                return merge_map(b, f, m);
        for (struct tree *c = m->first; c; c = c->next)
                if (merge_map(b, f, c) < 0)
                        return -EINVAL;
        return 0;
}

static int on_close(struct builder *b)
{
        struct frame *f = top(b);
        if (f->merged && merge_keys(b, f) < 0)
                return -EINVAL;
        if (f->anchor)
                *f->anchor = (struct anchor){ f->t, b->values - f->start, f->height };
        b->depth--;
        struct frame *up = top(b);
        if (up && f->height + 1 > up->height)
                up->height = f->height + 1;
        return 0;
}

/* Depth is bounded by TREE_MAX_DEPTH, so this may call itself. */
static struct tree *tree_copy(struct builder *b, const struct tree *from)
{
        struct tree *t = arena_new(b->arena, struct tree);
        *t = *from;
        t->next = t->parent = NULL;
        if (from->kind < TREE_LIST)
                return t;
        t->first = t->last = NULL;
        t->count = 0;
        for (const struct tree *c = from->first; c; c = c->next)
                tree_append(t, tree_copy(b, c));
        return t;
}

static int on_alias(struct builder *b, const yaml_event_t *e)
{
        const char *name = (const char *)e->data.alias.anchor;
        uint32_t line = (uint32_t)e->start_mark.line + 1, col = (uint32_t)e->start_mark.column + 1;
        const struct anchor *x = index_get(&b->anchors, name);
        if (!x)
                return tree_fail(b->at, b->err, line, col,
                        "write &NAME before the value it stands for; quote a value that begins with *",
                        "the alias *%.60s has no anchor before it", name);
        if (!x->t)
                return tree_fail(b->at, b->err, line, col, NULL,
                        "the alias *%.60s stands inside its own anchor", name);
        if (b->aliased + x->values > TREE_MAX_ALIASED || b->values + x->values > TREE_MAX_NODES)
                return tree_fail(b->at, b->err, line, col, "use fewer aliases of aliases",
                        "the aliases make more than %d values", TREE_MAX_ALIASED);
        if (b->depth + x->height > TREE_MAX_DEPTH)
                return tree_fail(b->at, b->err, line, col, "use fewer aliases of aliases",
                        "lists and maps are nested more than %d deep", TREE_MAX_DEPTH);
        b->aliased += x->values;
        b->values += x->values;
        struct tree *t = tree_copy(b, x->t);
        t->key = NULL;
        return place(b, t, x->height);
}

static int on_tree_event(struct builder *b, const yaml_event_t *e)
{
        switch (e->type) {
        case YAML_SCALAR_EVENT:
                return on_scalar(b, e);
        case YAML_SEQUENCE_START_EVENT:
                return on_open(
                        b, e, TREE_LIST, e->data.sequence_start.anchor, e->data.sequence_start.tag);
        case YAML_MAPPING_START_EVENT:
                return on_open(
                        b, e, TREE_MAP, e->data.mapping_start.anchor, e->data.mapping_start.tag);
        case YAML_SEQUENCE_END_EVENT:
        case YAML_MAPPING_END_EVENT:
                return on_close(b);
        case YAML_ALIAS_EVENT:
                return on_alias(b, e);
        case YAML_DOCUMENT_START_EVENT:
                if (b->root)
                        return tree_fail(b->at, b->err, (uint32_t)e->start_mark.line + 1,
                                (uint32_t)e->start_mark.column + 1,
                                "a cluster is one document: put the other into a file of its own",
                                "a second document begins here");
                return 0;
        default:
                return 0;
        }
}

/* A bracket that is still open at the end of the file is the trouble, not the end. */
static int syntax(struct builder *b)
{
        const struct frame *f = top(b);
        const char *problem = b->parser.problem;
        if (f && problem && streq(problem, "did not find expected node content") && b->parser.eof &&
                b->parser.problem_mark.index >= b->parser.mark.index)
                return tree_fail(b->at, b->err, f->t->line, f->t->col, "add the closing bracket",
                        "the %s opened here is not closed",
                        f->t->kind == TREE_LIST ? "list" : "map");
        return tree_syntax(&b->parser, b->file, b->at, b->err);
}

static int build(struct builder *b)
{
        for (bool end = false; !end;) {
                yaml_event_t e;
                if (!yaml_parser_parse(&b->parser, &e))
                        return syntax(b);
                end = e.type == YAML_STREAM_END_EVENT;
                int r = on_tree_event(b, &e);
                yaml_event_delete(&e);
                if (r < 0)
                        return r;
        }
        if (!b->root || b->root->kind == TREE_NULL)
                return tree_fail(b->at, b->err, 1, 1, "`slipway init` writes one to begin with",
                        "the file is empty");
        return 0;
}

int tree_parse_file(struct arena *a, const struct tree_file *file, struct tree **out,
        struct tree *at, struct error *err)
{
        struct builder b CLEANUP(
                builder_release) = { .arena = a, .file = file, .at = at, .err = err };
        *at = (struct tree){ .file = file, .line = 1, .col = 1, .text = "" };
        if (!yaml_parser_initialize(&b.parser))
                return tree_fail(at, err, 1, 1, NULL, "libyaml ran out of memory");
        if (tree_check_text(file, at, err) < 0)
                return -EINVAL;
        yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&b.parser, (const unsigned char *)file->text, file->len);
        if (build(&b) < 0)
                return -EINVAL;
        *out = b.root;
        return 0;
}
