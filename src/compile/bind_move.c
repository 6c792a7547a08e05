// Steps that only move numbers: changes of layout, concatenations.
#include <string.h>

#include "compile/bind.h"
#include "compile/layout.h"
#include "kernel/relay.h"
#include "model/attr.h"

typedef struct RelaySpec {
    Images images;
    bool   to_blocked;
} RelaySpec;

static Relay relay_of(const Step *s, const Space *space) {
    const RelaySpec *r = s->spec;
    return (Relay){.n = r->images.n,
                   .channels = r->images.c,
                   .pixels = r->images.pixels,
                   .from = space != NULL ? operand_at(&s->in[0], space) : NULL,
                   .to = space != NULL ? operand_at(&s->out[0], space) : NULL};
}

static void relay_run(const StepCall *c) {
    Relay r = relay_of(c->step, c->space);
    if (((const RelaySpec *)c->step->spec)->to_blocked)
        c->step->isa->relay_block(&r, c->part);
    else
        c->step->isa->relay_plain(&r, c->part);
}

static uint32_t relay_step_tasks(const Step *s, const Version *v) {
    (void)v;
    Relay r = relay_of(s, NULL);
    return relay_tasks(&r, s->isa->lanes);
}

static const Kind relay_kind = {.name = "relay", .run = relay_run, .tasks = relay_step_tasks};

Err bind_relay(Binder *b, const IrLayer *l, Step *s) {
    const IrValue *in = &b->ir->values[l->in[0]];
    if (layout_free(&in->type, b->ir->lanes) || ir_is_const(b->ir, l->in[0])) return ERR_OK;
    RelaySpec *spec = NULL;
    TRY(bind_room(b, sizeof *spec, &spec));
    *spec = (RelaySpec){layout_images(&in->type), in->layout == LAYOUT_PLAIN};
    s->kind = &relay_kind;
    s->spec = spec;
    return ERR_OK;
}

// Rows of every part, one behind the other: out row = row of part 0, row of part 1, ...
typedef struct ConcatSpec {
    size_t  rows, out_row;
    size_t *row, *at;  // [n_in] bytes of a row and where it goes; row 0: it is there already
} ConcatSpec;

static void concat_run(const StepCall *c) {
    const ConcatSpec *s = c->step->spec;
    char             *out = operand_at(&c->step->out[0], c->space);
    uint32_t          begin, end;
    part_range(c->part, (uint32_t)s->rows * c->step->n_in, &begin, &end);
    for (uint32_t t = begin; t < end; t++) {
        uint32_t    i = t / (uint32_t)s->rows, r = t % (uint32_t)s->rows;
        const char *in = operand_at(&c->step->in[i], c->space);
        if (s->row[i] > 0) memcpy(out + r * s->out_row + s->at[i], in + r * s->row[i], s->row[i]);
    }
}

static uint32_t concat_tasks(const Step *s, const Version *v) {
    (void)v;
    return (uint32_t)((const ConcatSpec *)s->spec)->rows * s->n_in;
}

static const Kind concat_kind = {.name = "concat", .run = concat_run, .tasks = concat_tasks};

Err bind_concat(Binder *b, const IrLayer *l, Step *s) {
    const Ir     *ir = b->ir;
    const Tensor *out = ir_type(ir, l->out[0]);
    int64_t       axis = attr_int(l->node, "axis", 1);
    ConcatSpec   *spec = NULL;
    bool          work = false;
    TRY(bind_room(b, sizeof *spec, &spec));
    TRY(bind_room(b, l->n_in * sizeof *spec->row, &spec->row));
    TRY(bind_room(b, l->n_in * sizeof *spec->at, &spec->at));
    spec->rows = 1;
    for (int64_t i = 0; i < (axis < 0 ? axis + out->rank : axis); i++)
        spec->rows *= (size_t)out->dims[i];
    for (uint32_t i = 0; i < l->n_in; i++) {
        const IrValue *v = &ir->values[l->in[i]];
        size_t         row = layout_bytes(&v->type, v->layout, ir->lanes) / spec->rows;
        spec->at[i] = spec->out_row;
        spec->out_row += row;
        spec->row[i] = place_is_there(ir, b->places, l, i) ? 0 : row;
        work = work || spec->row[i] > 0;
    }
    s->spec = spec;
    if (work) s->kind = &concat_kind;
    return ERR_OK;
}
