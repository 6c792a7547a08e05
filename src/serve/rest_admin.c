// What administrators do: models listed, loaded and unloaded. Nothing is uploaded here.
#include <stdio.h>
#include <string.h>

#include "serve/card.h"
#include "serve/rest_int.h"

// The body may say {"ready":true}: those alone.
static bool only_ready(const RestCall *c, bool *out) {
    json_t *doc;
    bool    ok = true;
    *out = false;
    if (c->x->body_len == 0) return true;
    if (json_parse("body", (const char *)c->x->body, c->x->body_len, &doc) != ERR_OK) return false;
    json_t *ready = json_object_get(doc, "ready");
    if (ready != NULL) {
        ok = json_is_boolean(ready);
        *out = json_is_true(ready);
    }
    json_decref(doc);
    return ok;
}

static void tell_index(RestCall *c) {
    const Fleet *f = c->rest->o.fleet;
    bool         ready;
    if (!only_ready(c, &ready)) {
        rest_error(c->x, c, 400, 0, "the body is not {\"ready\":true|false}");
        return;
    }
    json_t *list = json_array();
    for (uint32_t i = 0; i < fleet_count(f); i++) {
        const Served *s = fleet_at(f, i);
        if (ready && s->state != FLEET_READY) continue;
        json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:s}", "name", s->name, "version",
                                              s->version, "state", card_state(s->state), "reason",
                                              s->reason != NULL ? s->reason : ""));
    }
    rest_json(c, 200, list);
}

static void changed(void *self, const char *why) {
    RestCall *c = self;
    c->waiting = false;
    if (c->x == NULL)
        rest_free(c);
    else if (why != NULL)
        rest_error(c->x, c, 400, 0, why);
    else
        rest_text(c, 200, "application/json", "", 0);
}

// A model that is uploaded, or a configuration that is sent along, is refused, not ignored.
static bool brings_files(const RestCall *c) {
    json_t *doc;
    if (c->x->body_len == 0) return false;
    if (json_parse("body", (const char *)c->x->body, c->x->body_len, &doc) != ERR_OK) return true;
    json_t     *parameters = json_object_get(doc, "parameters");
    const char *key;
    json_t     *value;
    bool        found = false;
    json_object_foreach(parameters, key, value) {
        found = found || strcmp(key, "config") == 0 || strncmp(key, "file:", 5) == 0;
    }
    json_decref(doc);
    return found;
}

void rest_admin(RestCall *c) {
    Fleet *f = c->rest->o.fleet;
    if (c->route.kind == ROUTE_INDEX) {
        tell_index(c);
        return;
    }
    if (brings_files(c)) {
        rest_error(c->x, c, 400, 0, "models and their settings come from the server's own files");
        return;
    }
    c->waiting = true;
    if (c->route.kind == ROUTE_LOAD)
        fleet_load(f, c->route.name, changed, c);
    else
        fleet_unload(f, c->route.name, changed, c);
}
