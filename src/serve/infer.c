#include "serve/infer.h"

#include <string.h>

#include "base/text.h"
#include "base/utf8.h"

const char *infer_type_name(DType t) {
    switch (t) {
#define X(name, id)                                                                                \
    case DT_##id:                                                                                  \
        return name;
#include "serve/infer_type.def"
#undef X
    default: return NULL;
    }
}

DType infer_dtype(Str name) {
#define X(text, id)                                                                                \
    if (name.len == sizeof(text) - 1 && memcmp(name.at, text, name.len) == 0) return DT_##id;
#include "serve/infer_type.def"
#undef X
    return DT_NONE;
}

const char *infer_show(Str name, char out[INFER_SHOWN]) {
    const char *at = name.len > 0 ? name.at : "", *end = at + name.len;
    size_t      n = 0;
    while (at < end && n < INFER_SHOWN - 8) {
        uint32_t point = utf8_next(&at, end);
        if (point == UTF8_BAD || utf8_control(point))
            out[n++] = '?';
        else
            n += utf8_put(point, out + n);
    }
    if (at < end) {
        memcpy(out + n, "...", 3);
        n += 3;
    }
    out[n] = '\0';
    return out;
}

static bool find(const InferPort *port, Str name, uint32_t *out) {
    for (uint32_t i = 0; i < port->n_outputs; i++)
        if (text_equal(name, text_of(port->outputs[i].name))) {
            *out = i;
            return true;
        }
    return false;
}

static bool chosen(const uint32_t *index, uint32_t n, uint32_t output) {
    for (uint32_t i = 0; i < n; i++)
        if (index[i] == output) return true;
    return false;
}

Err infer_choose(const InferPort *port, const InferRequest *r, uint32_t *index, bool *binary,
                 uint32_t *n) {
    char shown[INFER_SHOWN];
    for (uint32_t i = 0; i < r->n_wanted; i++) {
        const InferWanted *w = &r->wanted[i];
        uint32_t           at = 0;
        if (!find(port, w->name, &at))
            return err_set(ERR_INVALID, "outputs[%u]: the model has no output '%s'", i,
                           infer_show(w->name, shown));
        if (chosen(index, i, at))
            return err_set(ERR_INVALID, "outputs[%u]: '%s' is asked for twice", i,
                           port->outputs[at].name);
        index[i] = at;
        binary[i] = w->said ? w->binary : r->binary;
    }
    *n = r->n_wanted;
    if (r->n_wanted > 0) return ERR_OK;
    for (uint32_t i = 0; i < port->n_outputs; i++) {
        index[i] = i;
        binary[i] = r->binary;
    }
    *n = port->n_outputs;
    return ERR_OK;
}
