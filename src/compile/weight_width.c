#include "compile/weight_width.h"

#include <string.h>

#include "base/text.h"

static const char *const names[] = {
#define X(id, name, form) name,
#include "compile/weight_width.def"
#undef X
};

const char *weight_width_name(WeightWidth w) { return names[w]; }

Err weight_width_parse(const char *text, WeightWidth *out) {
    char        hint[TEXT_MEANT];
    const char *meant = text_meant(text, names, WEIGHT_WIDTHS, "", hint);
    for (uint32_t i = 0; i < WEIGHT_WIDTHS; i++)
        if (strcmp(names[i], text) == 0) {
            *out = (WeightWidth)i;
            return ERR_OK;
        }
    return err_set(ERR_ARG, "weights: '%.60s' is not one of fp32, fp16, int8%s%s", text,
                   meant[0] != '\0' ? "; " : "", meant);
}

static const char *keep(Arena *a, const char *text) {
    return text != NULL ? arena_str(a, text) : "";
}

LayerWeights *weight_report_add(WeightReport *r, const LayerWeights *row) {
    if (r == NULL) return NULL;
    LayerWeights *own = arena_new(r->arena, LayerWeights, 1);
    *own = *row;
    own->name = keep(r->arena, row->name);
    *(r->first == NULL ? &r->first : &r->last->next) = own;
    r->last = own;
    (*(row->kept != NULL ? &r->kept : &r->narrowed))++;
    return own;
}
