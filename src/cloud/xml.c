#include <expat.h>

#include "base/str.h"
#include "cloud/xml.h"

struct xml_level {
        char *name;
        json_t *children; /* NULL: none yet */
        struct str text;
};

struct xml_reader {
        XML_Parser parser;
        struct xml_level levels[XML_MAX_DEPTH];
        size_t depth, elements;
        json_t *root;
        const char *why; /* a refusal of ours */
};

static void xml_stop(struct xml_reader *x, const char *why)
{
        x->why = x->why ? x->why : why;
        XML_StopParser(x->parser, XML_FALSE);
}

static void xml_on_start(void *arg, const char *name, const char **attributes)
{
        struct xml_reader *x = arg;
        const char *colon = strrchr(name, ':');
        if (x->depth == XML_MAX_DEPTH || ++x->elements > XML_MAX_ELEMENTS) {
                xml_stop(x, x->depth == XML_MAX_DEPTH ? "it is nested too deeply"
                                                      : "it has too many elements");
                return;
        }
        x->levels[x->depth++] = (struct xml_level){ .name = xstrdup(colon ? colon + 1 : name) };
}

static void xml_on_text(void *arg, const char *text, int n)
{
        struct xml_reader *x = arg;
        if (x->depth)
                str_addn(&x->levels[x->depth - 1].text, text, (size_t)n);
}

/* Takes the child. */
static void xml_put(json_t *object, const char *name, json_t *child)
{
        json_t *old = json_object_get(object, name);
        if (json_is_array(old)) {
                json_array_append_new(old, child);
        } else if (old) {
                json_object_set_new(object, name, json_pack("[O, o]", old, child));
        } else {
                json_object_set_new(object, name, child);
        }
}

static void xml_level_release(struct xml_level *l)
{
        free_wiped(l->name);
        json_decref(l->children);
        str_wipe_release(&l->text);
        *l = (struct xml_level){ 0 };
}

static void xml_on_end(void *arg, const char *name)
{
        struct xml_reader *x = arg;
        if (!x->depth || x->why)
                return;
        struct xml_level *l = &x->levels[--x->depth];
        json_t *value = l->children ? json_incref(l->children) : json_string(str_text(&l->text));
        if (!value) {
                xml_stop(x, "it has text that is not UTF-8");
        } else if (!x->depth) {
                x->root = value;
        } else {
                struct xml_level *parent = &x->levels[x->depth - 1];
                if (!parent->children)
                        parent->children = json_object();
                xml_put(parent->children, l->name, value);
        }
        xml_level_release(l);
}

static void xml_on_doctype(
        void *arg, const char *name, const char *system, const char *public, int internal)
{
        xml_stop(arg, "it has a document type, which no cloud sends");
}

static int xml_fail(const struct xml_reader *x, struct error *err)
{
        enum XML_Error code = XML_GetErrorCode(x->parser);
        return error_set(err, EPROTO, EXIT_STEP, "the answer is not usable XML (line %lu): %s",
                (unsigned long)XML_GetCurrentLineNumber(x->parser),
                x->why ? x->why : XML_ErrorString(code));
}

int xml_read(const char *text, size_t n, json_t **out, struct error *err)
{
        struct xml_reader x = { .parser = XML_ParserCreate(NULL) };
        int r = 0;
        if (!x.parser)
                abort();
        XML_SetUserData(x.parser, &x);
        XML_SetElementHandler(x.parser, xml_on_start, xml_on_end);
        XML_SetCharacterDataHandler(x.parser, xml_on_text);
        XML_SetStartDoctypeDeclHandler(x.parser, xml_on_doctype);
        if (n > INT32_MAX)
                x.why = "it is too large";
        if (x.why || XML_Parse(x.parser, text, (int)n, 1) != XML_STATUS_OK || !x.root)
                r = xml_fail(&x, err);
        while (x.depth)
                xml_level_release(&x.levels[--x.depth]);
        XML_ParserFree(x.parser);
        if (r < 0)
                json_decref(x.root);
        else
                *out = x.root;
        return r;
}
