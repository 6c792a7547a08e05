#include <string.h>

#include "kernel/conv_plan.h"

static ConvPlan plan(const ConvShape *s, const Isa *isa, bool plain) {
    Version v = {.pack = plain ? CONV_PLAIN : 0};
    return conv_plan(s, &v, isa->lanes, isa->registers);
}

size_t conv_pack_bytes(const ConvShape *s, const Isa *isa, bool plain) {
    ConvPlan p = plan(s, isa, plain);
    return p.panel * p.vecs * p.groups * sizeof(float);
}

// One tap of one channel, for a vector of columns that starts at column `first` of group g. The
// zeros between groups that run together are those of columns that do not see the channel.
static void pack_vector(const ConvShape *s, const ConvPlan *p, uint32_t g, uint32_t first,
                        uint32_t channel, uint32_t tap, const float *weights, float *out) {
    uint32_t ic = s->ic / s->groups, oc = s->oc / s->groups, taps = s->kh * s->kw;
    for (uint32_t i = 0; i < p->lanes; i++) {
        uint32_t column = first + i;
        bool     sees = column < p->oc && column / oc == channel / ic;
        size_t   row = (size_t)g * p->oc + column;
        out[i] = sees ? weights[(row * ic + channel % ic) * taps + tap] : 0;
    }
}

// Depth runs over blocks of channels, taps, channels of a block.
static void pack_panel(const ConvShape *s, const ConvPlan *p, uint32_t g, uint32_t first,
                       const float *weights, float *out) {
    uint32_t taps = s->kh * s->kw;
    for (uint32_t b = 0; b < p->ic; b += p->block) {
        uint32_t channels = p->ic - b < p->block ? p->ic - b : p->block;
        for (uint32_t tap = 0; tap < taps; tap++)
            for (uint32_t k = 0; k < channels; k++, out += p->lanes)
                pack_vector(s, p, g, first, b + k, tap, weights, out);
    }
}

void conv_pack(const ConvShape *s, const Isa *isa, bool plain, const float *w, float *out) {
    ConvPlan p = plan(s, isa, plain);
    for (uint32_t g = 0; g < p.groups; g++)
        for (uint32_t v = 0; v < p.vecs; v++, out += p.panel)
            pack_panel(s, &p, g, v * p.lanes, w, out);
}
