// Steps that move data: layout conversions, concatenations, strided copies, gathers; and
// reductions.
#include <stdio.h>
#include <string.h>

#include "base/tensor.h"
#include "compile/bind/bind.h"
#include "compile/layout.h"
#include "compile/spec.h"
#include "kernel/half_convert.h"
#include "kernel/int8_conv.h"
#include "kernel/normalize.h"
#include "kernel/strided_copy.h"

typedef struct LayoutSpec {
    ImageDims images;
    bool      to_blocked;
} LayoutSpec;

static LayoutConvert layout_convert_of(const Step *s, const RunMemory *mem) {
    const LayoutSpec *r = s->spec;
    return (LayoutConvert){.n = r->images.n,
                           .channels = r->images.c,
                           .pixels = r->images.pixels,
                           .from = mem != NULL ? operand_at(&s->in[0], mem) : NULL,
                           .to = mem != NULL ? operand_at(&s->out[0], mem) : NULL};
}

static void layout_step_run(const StepCall *c) {
    LayoutConvert r = layout_convert_of(c->step, c->mem);
    if (((const LayoutSpec *)c->step->spec)->to_blocked)
        c->step->isa->layout_to_blocked(&r, c->part);
    else
        c->step->isa->layout_to_plain(&r, c->part);
}

static uint32_t layout_step_tasks(const Step *s, const Version *v) {
    (void)v;
    LayoutConvert r = layout_convert_of(s, NULL);
    return layout_convert_tasks(&r, s->isa->lanes);
}

static const StepKind layout_kind = {
    .name = "layout", .run = layout_step_run, .tasks = layout_step_tasks};

// Halves to floats and back.

static HalfConvert half_convert_of(const Step *s, const RunMemory *mem) {
    HalfConvert h = *(const HalfConvert *)s->spec;
    if (mem == NULL) return h;
    h.from = operand_at(&s->in[0], mem);
    h.to = operand_at(&s->out[0], mem);
    return h;
}

static void half_step_run(const StepCall *c) {
    HalfConvert h = half_convert_of(c->step, c->mem);
    c->step->isa->half_convert(&h, c->part);
}

static uint32_t half_step_tasks(const Step *s, const Version *v) {
    (void)v;
    HalfConvert h = half_convert_of(s, NULL);
    return half_convert_tasks(&h);
}

static const StepKind half_kind = {.name = "half", .run = half_step_run, .tasks = half_step_tasks};

Err bind_half(Binder *b, const IrLayer *l, Step *s) {
    const Tensor *from = ir_type(b->ir, l->in[0]), *to = ir_type(b->ir, l->out[0]);
    HalfConvert  *spec = NULL;
    TRY(bind_alloc(b, sizeof *spec, &spec));
    *spec = (HalfConvert){.n = (size_t)tensor_count(from),
                          .bfloat = from->dtype == DT_BF16 || to->dtype == DT_BF16,
                          .widen = to->dtype == DT_F32};
    s->spec = spec;
    if (spec->n > 0) s->kind = &half_kind;
    return ERR_OK;
}

// A row of the output is a row of input 0, then of input 1, ...
typedef struct ConcatSpec {
    size_t  rows, out_row;
    size_t *row, *at;  // [n_in] bytes of a row and its offset; row 0: computed in place
    size_t *in_row;    // [n_in] bytes between rows of an input
} ConcatSpec;

static void concat_step_run(const StepCall *c) {
    const ConcatSpec *s = c->step->spec;
    char             *out = operand_at(&c->step->out[0], c->mem);
    uint32_t          begin, end;
    part_range(c->part, (uint32_t)s->rows * c->step->n_in, &begin, &end);
    for (uint32_t t = begin; t < end; t++) {
        uint32_t    i = t / (uint32_t)s->rows, r = t % (uint32_t)s->rows;
        const char *in = operand_at(&c->step->in[i], c->mem);
        if (s->row[i] > 0)
            memcpy(out + r * s->out_row + s->at[i], in + r * s->in_row[i], s->row[i]);
    }
}

static uint32_t concat_step_tasks(const Step *s, const Version *v) {
    (void)v;
    return (uint32_t)((const ConcatSpec *)s->spec)->rows * s->n_in;
}

static const StepKind concat_kind = {
    .name = "concat", .run = concat_step_run, .tasks = concat_step_tasks};

// Concatenation of channels: a row is a pixel.
static Err bind_pixel_concat(Binder *b, const IrLayer *l, ConcatSpec *spec, Step *s) {
    const Ir     *ir = b->ir;
    const Tensor *out = ir_type(ir, l->out[0]);
    ImageDims     im = layout_image_dims(out);
    spec->rows = im.n * (size_t)im.pixels;
    spec->out_row = int8_pitch(im.c, ir->lanes);
    for (uint32_t i = 0, at = 0; i < l->n_in; i++) {
        uint32_t c = layout_image_dims(ir_type(ir, l->in[i])).c;
        spec->at[i] = at;
        spec->row[i] = c;
        spec->in_row[i] = int8_pitch(c, ir->lanes);
        at += c;
    }
    s->spec = spec;
    s->kind = &concat_kind;
    return ERR_OK;
}

Err bind_concat(Binder *b, const IrLayer *l, Step *s) {
    const Ir     *ir = b->ir;
    const Tensor *out = ir_type(ir, l->out[0]);
    ConcatSpec   *spec = NULL;
    bool          work = false;
    TRY(bind_alloc(b, sizeof *spec, &spec));
    TRY(bind_alloc(b, l->n_in * sizeof *spec->row, &spec->row));
    TRY(bind_alloc(b, l->n_in * sizeof *spec->at, &spec->at));
    TRY(bind_alloc(b, l->n_in * sizeof *spec->in_row, &spec->in_row));
    bool pixels = ir->values[l->out[0]].layout == LAYOUT_PIXELS;
    spec->rows = 1;
    for (int32_t i = 0; i < spec_concat_axis(ir, l); i++) spec->rows *= (size_t)out->dims[i];
    if (pixels) return bind_pixel_concat(b, l, spec, s);
    for (uint32_t i = 0; i < l->n_in; i++) {
        const IrValue *v = &ir->values[l->in[i]];
        size_t         row = layout_bytes(&v->type, v->layout, ir->lanes) / spec->rows;
        spec->at[i] = spec->out_row;
        spec->out_row += row;
        spec->in_row[i] = row;
        spec->row[i] = memory_plan_in_place(ir, b->plan, l, i) ? 0 : row;
        work = work || spec->row[i] > 0;
    }
    s->spec = spec;
    if (work) s->kind = &concat_kind;
    return ERR_OK;
}

// Strided copies, gathers, reductions.

static void copy_step_run(const StepCall *c) {
    StridedCopy s = *(const StridedCopy *)c->step->spec;
    s.from = operand_at(&c->step->in[0], c->mem);
    s.to = operand_at(&c->step->out[0], c->mem);
    c->step->isa->strided_copy(&s, c->part);
}

static uint32_t copy_step_tasks(const Step *s, const Version *v) {
    (void)v;
    return strided_copy_tasks(s->spec);
}

static const StepKind copy_kind = {.name = "copy", .run = copy_step_run, .tasks = copy_step_tasks};

Err bind_layout(Binder *b, const IrLayer *l, Step *s) {
    const IrValue *in = &b->ir->values[l->in[0]];
    const Layout   to = b->ir->values[l->out[0]].layout;
    if (layout_is_noop(&in->type, in->layout, to, b->ir->lanes) || ir_is_const(b->ir, l->in[0]))
        return ERR_OK;
    if (in->layout == LAYOUT_PIXELS || to == LAYOUT_PIXELS) {
        StridedCopy *copy = NULL;
        TRY(bind_alloc(b, sizeof *copy, &copy));
        *copy = layout_pixel_copy(&in->type, to == LAYOUT_PIXELS, b->ir->lanes);
        s->kind = &copy_kind;
        s->spec = copy;
        return ERR_OK;
    }
    LayoutSpec *spec = NULL;
    TRY(bind_alloc(b, sizeof *spec, &spec));
    *spec = (LayoutSpec){layout_image_dims(&in->type), in->layout == LAYOUT_PLAIN};
    s->kind = &layout_kind;
    s->spec = spec;
    return ERR_OK;
}

Err bind_copy(Binder *b, const IrLayer *l, Step *s) {
    return bind_spec(b, l, &copy_kind, sizeof(StridedCopy), s);
}

// Computed indexes are untrusted: an index out of range fails the run.
static bool indexes_fit(const StepCall *c, const Gather *p) {
    int64_t size = (int64_t)p->axis;
    for (size_t i = 0; i < p->count; i++) {
        int64_t k = p->wide ? ((const int64_t *)p->index)[i] : ((const int32_t *)p->index)[i];
        if (k >= -size && k < size) continue;
        if (c->part.index == 0) {
            c->mem->failed =
                op_failed(c->step->node, err_set(ERR_INVALID, "index %lld is outside of %lld",
                                                 (long long)k, (long long)size));
            (void)snprintf(c->mem->why, sizeof c->mem->why, "%s", err_why());
        }
        return false;
    }
    return true;
}

static void gather_step_run(const StepCall *c) {
    Gather p = *(const Gather *)c->step->spec;
    p.index = operand_at(&c->step->in[1], c->mem);
    p.from = operand_at(&c->step->in[0], c->mem);
    p.to = operand_at(&c->step->out[0], c->mem);
    if (c->slice > 0 || indexes_fit(c, &p)) gather_run(&p, c->part);
}

static uint32_t gather_step_tasks(const Step *s, const Version *v) {
    (void)v;
    return gather_tasks(s->spec);
}

static const StepKind gather_kind = {
    .name = "gather", .run = gather_step_run, .tasks = gather_step_tasks, .checks_inputs = true};

Err bind_gather(Binder *b, const IrLayer *l, Step *s) {
    return bind_spec(b, l, &gather_kind, sizeof(Gather), s);
}

static void reduce_step_run(const StepCall *c) {
    c->step->isa->reduce(c->step->spec, operand_at(&c->step->in[0], c->mem),
                         operand_at(&c->step->out[0], c->mem), c->part);
}

static uint32_t reduce_step_tasks(const Step *s, const Version *v) {
    (void)v;
    return reduce_tasks(s->spec, s->isa);
}

static const StepKind reduce_kind = {
    .name = "reduce", .run = reduce_step_run, .tasks = reduce_step_tasks};

Err bind_reduce(Binder *b, const IrLayer *l, Step *s) {
    return bind_spec(b, l, &reduce_kind, sizeof(Reduce), s);
}
