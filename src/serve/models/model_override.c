#include "serve/models/model_override.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

enum { BATCH_MOST = 65536 };

// A number, or a string of digits: JSON of protobuf has both.
static Err read_batch(const json_t *value, ModelOverride *out) {
    int64_t     n = json_is_integer(value) ? json_integer_value(value) : -1;
    const char *text = json_string_value(value);
    if (text != NULL && strlen(text) < 8 && strspn(text, "0123456789") == strlen(text) &&
        text[0] != '\0')
        n = strtol(text, NULL, 10);
    if (n < 0 || n > BATCH_MOST)
        return err_set(ERR_INVALID, "config: max_batch_size is not a number from 0 to %d",
                       BATCH_MOST);
    out->has_max_batch = true;
    out->max_batch = (int32_t)n;
    return ERR_OK;
}

static Err read_parameter(const char *key, const json_t *value, ModelOverride *out) {
    const char *text = json_string_value(json_object_get(value, "string_value"));
    if (strcmp(key, "qos.weights") != 0)
        return err_set(ERR_INVALID,
                       "config: of the parameters only qos.weights can be changed by a load; set "
                       "'%.60s' in the server's files",
                       key);
    if (text == NULL)
        return err_set(ERR_INVALID, "config: qos.weights lacks {\"string_value\": \"...\"}");
    if (weight_width_parse(text, &out->weights) != ERR_OK) return err_add(ERR_INVALID, "config");
    out->has_weights = true;
    return ERR_OK;
}

static Err read_parameters(const json_t *all, ModelOverride *out) {
    const char *key;
    json_t     *value;
    if (!json_is_object(all)) return err_set(ERR_INVALID, "config: parameters is not an object");
    json_object_foreach((json_t *)(uintptr_t)all, key, value) TRY(read_parameter(key, value, out));
    return ERR_OK;
}

static Err read_member(const char *key, const json_t *value, ModelOverride *out) {
    static const char *const same[] = {"name", "platform", "backend"};
    if (strcmp(key, "max_batch_size") == 0) return read_batch(value, out);
    if (strcmp(key, "parameters") == 0) return read_parameters(value, out);
    for (uint32_t i = 0; i < 3; i++)
        if (strcmp(key, same[i]) == 0) return ERR_OK;
    return err_set(ERR_INVALID,
                   "config: only max_batch_size and the parameter qos.weights can be changed by a "
                   "load; set '%.60s' in the server's files",
                   key);
}

Err model_override_parse(Str text, ModelOverride *out) {
    json_t     *doc = NULL, *value;
    const char *key;
    Err         e = json_parse("config", text.at, text.len, &doc);
    if (e == ERR_OK && !json_is_object(doc)) e = err_set(ERR_INVALID, "config is not an object");
    json_object_foreach(doc, key, value) {
        if (e == ERR_OK) e = read_member(key, value, out);
    }
    json_decref(doc);
    return e;
}
