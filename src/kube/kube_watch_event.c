#include "kube/kube_watch_event.h"

#include <string.h>

enum { VERSION_BYTES = 4096, CONTINUE_BYTES = 8192 };

// Zero characters are allowed: users may write them into annotations, and one such object must not
// stop a watch. Jansson limits the depth itself.
static Err parse(const char *what, const char *text, size_t len, json_t **out) {
    json_error_t why;
    *out = json_loadb(text, len, JSON_ALLOW_NUL, &why);
    if (*out == NULL)
        return err_set(ERR_PARSE, "%s: not JSON at byte %d: %s", what, why.position, why.text);
    if (json_is_object(*out)) return ERR_OK;
    json_decref(*out);
    return err_set(ERR_PARSE, "%s: it is JSON, but not an object", what);
}

static const char *text_at(const json_t *object, const char *key, size_t most) {
    const json_t *v = json_object_get(object, key);
    size_t        len = json_string_length(v);
    const char   *text = json_string_value(v);
    return text != NULL && len > 0 && len <= most && strlen(text) == len ? text : NULL;
}

static const char *version_of(const json_t *object) {
    return text_at(json_object_get(object, "metadata"), "resourceVersion", VERSION_BYTES);
}

static bool type_of(const json_t *event, KubeWatchType *out) {
    static const struct {
        const char   *text;
        KubeWatchType type;
    } types[] = {{"ADDED", WATCH_PUT},
                 {"MODIFIED", WATCH_PUT},
                 {"DELETED", WATCH_GONE},
                 {"BOOKMARK", WATCH_BOOKMARK},
                 {"ERROR", WATCH_ERROR}};
    const char *text = json_string_value(json_object_get(event, "type"));
    for (size_t i = 0; text != NULL && i < sizeof types / sizeof *types; i++) {
        if (strcmp(text, types[i].text) != 0) continue;
        *out = types[i].type;
        return true;
    }
    return false;
}

static Err read_event(const json_t *doc, KubeWatchEvent *out) {
    KubeWatchEvent e = {.object = json_object_get(doc, "object")};
    if (!type_of(doc, &e.type)) return err_set(ERR_PARSE, "watch: an event of unknown type");
    if (!json_is_object(e.object)) return err_set(ERR_PARSE, "watch: an event without an object");
    if (e.type == WATCH_ERROR)
        e.code = json_integer_value(json_object_get(e.object, "code"));
    else
        e.version = version_of(e.object);
    if (e.type != WATCH_ERROR && e.version == NULL)
        return err_set(ERR_PARSE, "watch: an object without metadata.resourceVersion");
    json_incref(e.object);
    *out = e;
    return ERR_OK;
}

Err kube_watch_event_parse(const char *text, size_t len, KubeWatchEvent *out) {
    json_t *doc = NULL;
    TRY(parse("watch", text, len, &doc));
    Err e = read_event(doc, out);
    json_decref(doc);
    return e;
}

void kube_watch_event_free(KubeWatchEvent *e) {
    json_decref(e->object);
    *e = (KubeWatchEvent){0};
}

static Err read_page(json_t *doc, KubeWatchPage *out) {
    const json_t *meta = json_object_get(doc, "metadata"),
                 *next = json_object_get(meta, "continue");
    KubeWatchPage p = {.list = doc, .items = json_object_get(doc, "items")};
    p.version = text_at(meta, "resourceVersion", VERSION_BYTES);
    p.next = text_at(meta, "continue", CONTINUE_BYTES);
    if (p.version == NULL) return err_set(ERR_PARSE, "list: no metadata.resourceVersion");
    if (p.next == NULL && json_string_length(next) > 0)
        return err_set(ERR_PARSE, "list: metadata.continue is longer than %d", CONTINUE_BYTES);
    // An empty list is `null` on some servers.
    if (p.items != NULL && !json_is_array(p.items) && !json_is_null(p.items))
        return err_set(ERR_PARSE, "list: items is not an array");
    for (size_t i = 0; i < json_array_size(p.items); i++)
        if (!json_is_object(json_array_get(p.items, i)))
            return err_set(ERR_PARSE, "list: item %zu is not an object", i);
    *out = p;
    return ERR_OK;
}

Err kube_watch_page_parse(const char *text, size_t len, KubeWatchPage *out) {
    json_t *doc = NULL;
    TRY(parse("list", text, len, &doc));
    Err e = read_page(doc, out);
    if (e != ERR_OK) json_decref(doc);
    return e;
}

void kube_watch_page_free(KubeWatchPage *p) {
    json_decref(p->list);
    *p = (KubeWatchPage){0};
}
