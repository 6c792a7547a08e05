#include "kernel/vec/vec_int.h"

#include <stdbool.h>

#include "kernel/vec/vec_half.h"
#include "kernel/vec/vec_math.h"

enum { BLOCK = 256 };  // floats; a block stays in L1 from the first step to the last

// An operand of a step: consecutive vectors, or the same vector repeated.
typedef struct Source {
    const float *at;
    size_t       step;  // VEC_LANES or 0
} Source;

// A vector of which only the first n lanes may be readable.
VEC_INLINE Vf source_part(Source s, size_t n) {
    return s.step == 0 ? vf_load(s.at) : vf_load_part(s.at, (uint32_t)n);
}

typedef void StepFn(const ElementwiseStep *s, Source a, Source b, float *out, size_t n);

// Two vectors per iteration, since the loop overhead equals the cost of a cheap step; then the
// tail.
#define STEP_LOOP(load, last)                                                                      \
    for (; n >= (size_t)2 * VEC_LANES; n -= (size_t)2 * VEC_LANES, out += 2 * VEC_LANES) {         \
        const Vf first = load, second = (a.at += a.step, b.at += b.step, load);                    \
        vf_store(out, first);                                                                      \
        vf_store(out + VEC_LANES, second);                                                         \
        a.at += a.step, b.at += b.step;                                                            \
    }                                                                                              \
    for (size_t some; n > 0; n -= some, out += some) {                                             \
        some = n < VEC_LANES ? n : VEC_LANES;                                                      \
        vf_store_part(out, last, (uint32_t)some);                                                  \
        a.at += a.step, b.at += b.step;                                                            \
    }

#define STEP(id, expr)                                                                             \
    VEC_INLINE Vf do_##id(const ElementwiseStep *s, Vf u) {                                        \
        (void)s;                                                                                   \
        return expr;                                                                               \
    }                                                                                              \
    static void step_##id(const ElementwiseStep *s, Source a, Source b, float *out, size_t n) {    \
        STEP_LOOP(do_##id(s, vf_load(a.at)), do_##id(s, source_part(a, some)))                     \
    }

#define STEP2(id, expr)                                                                            \
    VEC_INLINE Vf do_##id(const ElementwiseStep *s, Vf u, Vf v) {                                  \
        (void)s;                                                                                   \
        return expr;                                                                               \
    }                                                                                              \
    static void step_##id(const ElementwiseStep *s, Source a, Source b, float *out, size_t n) {    \
        STEP_LOOP(do_##id(s, vf_load(a.at), vf_load(b.at)),                                        \
                  do_##id(s, source_part(a, some), source_part(b, some)))                          \
    }

#define STEP_CALL(id, expr)                                                                        \
    static void step_##id(const ElementwiseStep *s, Source a, Source b, float *out, size_t n) {    \
        (void)s, (void)b;                                                                          \
        for (size_t i = 0; i < n; i++) {                                                           \
            const float u = a.at[a.step == 0 ? i % VEC_LANES : i];                                 \
            out[i] = (expr);                                                                       \
        }                                                                                          \
    }

VEC_INLINE Vf unit(Vf x) { return vf_clamp(x, 0, 1); }

VEC_INLINE Vf gelu(Vf x) {
    const Vf half = x * 0.5f;
    return half * vf_erf_root(x) + half;
}

// (1 + tanh(z)) / 2 is 1 / (1 + e^(-2z)), and z is (x + 0.044715 x^3) sqrt(2 / pi).
VEC_INLINE Vf gelu_tanh(Vf x) {
    return x / (1.0f + vf_exp((x * x * -7.135481283e-2f + -1.595769122f) * x));
}

// tanh(log(1 + e)) is (e^2 + 2e) / (e^2 + 2e + 2); past 20 it is 1.
VEC_INLINE Vf mish(Vf x) {
    const Vf e = vf_exp(vf_min(vf_set(20), x)), n = e * (e + 2.0f);
    return x * (n / (n + 2.0f));
}

VEC_INLINE Vf elu(Vf x, float p) { return vf_choose((Vi)(x < 0.0f), vf_expm1(x) * p, x); }

VEC_INLINE Vf sign(Vf x) {
    const Vf one = vf_copysign(vf_set(1), x);
    return vf_choose((Vi)(x > 0.0f) | (Vi)(x < 0.0f), one, x);
}

VEC_INLINE Vf shrink(Vf x, float p, float q) {
    const Vf up = vf_choose((Vi)(x > p), x - q, vf_set(0));
    return vf_choose((Vi)(x < -p), x + q, up);
}

VEC_INLINE Vf quantise(Vf x, const ElementwiseStep *s) {
    const Vf q = vf_rint(x / s->p) + s->q;
    return (vf_clamp(q, s->lo, s->hi) - s->q) * s->p;
}

// x = quarter * pi / 2 + r: sin(r) and cos(r) are polynomials. Terms of pi / 2 whose products with
// quarter are exact keep r accurate up to this size of x.
enum { SINE_MOST = 8192 };

VEC_INLINE Vf quarter_sine(Vf x, int32_t quarters) {
    const Vf quarter = vf_rint(x * 0x1.45f306p-1f);
    const Vf r = ((x - quarter * 0x1.92p0f) - quarter * 0x1.fb4p-12f) - quarter * 0x1.4442d2p-24f;
    const Vf t = r * r;
    const Vf s = ((t * -1.95152959e-4f + 8.33216087e-3f) * t + -1.66666546e-1f) * t * r + r;
    const Vf rest = ((t * 2.44331571e-5f + -1.38873163e-3f) * t + 4.16666457e-2f) * t;
    const Vf c = (rest + -0.5f) * t + 1.0f;
    const Vi turn = __builtin_convertvector(quarter, Vi) + quarters;
    const Vf y = vf_choose(-(turn & 1), c, s);
    return vf_choose(-(turn >> 1 & 1), -y, y);
}

VEC_INLINE Vf sine(Vf x) {
    const Vi small = (Vi)(vf_abs(x) <= (float)SINE_MOST);
    Vf       y = quarter_sine((Vf)((Vi)x & small), 0);
    if (vf_sum(vf_choose(small, vf_set(0), vf_set(1))) > 0) VEC_EACH_LANE(y, sinf(x[lane]));
    return y;
}

VEC_INLINE Vf cosine(Vf x) {
    const Vi small = (Vi)(vf_abs(x) <= (float)SINE_MOST);
    Vf       y = quarter_sine((Vf)((Vi)x & small), 1);
    if (vf_sum(vf_choose(small, vf_set(0), vf_set(1))) > 0) VEC_EACH_LANE(y, cosf(x[lane]));
    return y;
}

STEP2(ADD, u + v)
STEP2(SUB, u - v)
STEP2(MUL, u *v)
STEP2(DIV, u / v)
STEP2(MIN, vf_choose((Vi)(u != u), u, vf_min(u, v)))
STEP2(MAX, vf_choose((Vi)(u != u), u, vf_max(u, v)))
STEP2(PRELU, vf_choose((Vi)(u < 0.0f), u *v, u))
STEP2(POW_ANY, vf_pow(u, v))
STEP2(WHERE, vf_choose((Vi)(v != 0.0f), u, vf_set(s->p)))
STEP2(UNLESS, vf_choose((Vi)(v != 0.0f), vf_set(s->p), u))
STEP(COPY, u)
STEP(CLIP, vf_clamp(u, s->p, s->q))
STEP(LEAKY, vf_choose((Vi)(u < 0.0f), u * s->p, u))
STEP(AFFINE, u * s->p + s->q)
STEP(NEG, -u)
STEP(ABS, vf_abs(u))
STEP(SIGN, sign(u))
STEP(SQUARE, u *u)
STEP(CUBE, u *u *u)
STEP(SQRT, vf_sqrt(u))
STEP(RECIP, 1.0f / u)
STEP(EXP, vf_exp(u))
STEP(LOG, vf_log(u))
STEP(ERF, vf_erf(u))
STEP(TANH, vf_tanh(u))
STEP(SIGMOID, vf_sigmoid(u))
STEP(HSIGMOID, unit(u * s->p + s->q))
STEP(HSWISH, u *unit(u *(1.0f / 6) + 0.5f))
STEP(SILU, u / (1.0f + vf_exp(-u)))
STEP(GELU, gelu(u))
STEP(GELU_TANH, gelu_tanh(u))
STEP(ELU, elu(u, s->p))
STEP(SELU, elu(u, s->p) * s->q)
STEP(CELU, vf_choose((Vi)(u > 0.0f), u, vf_expm1(u / s->p) * s->p))
STEP(SOFTPLUS, vf_softplus(u))
STEP(SOFTSIGN, u / (1.0f + vf_abs(u)))
STEP(MISH, mish(u))
STEP(SHRINK, shrink(u, s->p, s->q))
STEP(ABOVE, (Vf)((Vi)u &(Vi)(u > s->p)))
STEP(FLOOR, vf_floor(u))
STEP(CEIL, vf_ceil(u))
STEP(ROUND, vf_rint(u))
STEP(F16, vf_round_f16(u))
STEP(BF16, vf_round_bf16(u))
STEP(QDQ, quantise(u, s))
STEP(SIN, sine(u))
STEP(COS, cosine(u))
STEP_CALL(TAN, tanf(u))
STEP_CALL(ASIN, asinf(u))
STEP_CALL(ACOS, acosf(u))
STEP_CALL(ATAN, atanf(u))
STEP_CALL(SINH, sinhf(u))
STEP_CALL(COSH, coshf(u))
STEP_CALL(ASINH, asinhf(u))
STEP_CALL(ACOSH, acoshf(u))
STEP_CALL(ATANH, atanhf(u))

static bool one_exponent(Source b) {
    if (b.step != 0) return false;
    for (size_t i = 1; i < VEC_LANES; i++)
        if (b.at[i] != b.at[0]) return false;
    return true;
}

// Most powers in networks are squares, cubes or reciprocals.
static void step_POW(const ElementwiseStep *s, Source a, Source b, float *out, size_t n) {
    const float e = one_exponent(b) ? b.at[0] : 0;
    StepFn     *f = e == 1    ? step_COPY
                    : e == 2  ? step_SQUARE
                    : e == 3  ? step_CUBE
                    : e == -1 ? step_RECIP
                              : step_POW_ANY;
    f(s, a, b, out, n);
}

static StepFn *const steps[EWISE_OPS] = {
#define X(id, operands, name) [EWISE_##id] = step_##id,
#include "kernel/ewise_op.def"
#undef X
};

// An argument as an operand; *single is storage for a scalar one.
VEC_INLINE Source argument(const ElementwiseInput *in, Vf *single) {
    if (in->mode != EWISE_SCALAR)
        return (Source){in->at, in->mode == EWISE_CONTIGUOUS ? VEC_LANES : 0};
    *single = vf_set(*in->at);
    return (Source){(const float *)single, 0};
}

typedef struct Arguments {
    Source from[EWISE_MAX_ARGS];
    Vf     single[EWISE_MAX_ARGS];
} Arguments;

typedef float Registers[EWISE_REGISTERS][BLOCK] __attribute__((aligned(64)));

// Operand `from` for the block that starts at element i of the span.
VEC_INLINE Source source(const Arguments *args, Registers regs, uint32_t from, size_t i) {
    if (from < EWISE_REGISTERS) return (Source){regs[from], VEC_LANES};
    const Source s = args->from[from - EWISE_ARG];
    return (Source){s.step == 0 ? s.at : s.at + i, s.step};
}

// Runs all steps block by block; the last step writes to out.
static void __attribute__((noinline))
run_steps(const ElementwiseProgram *c, const ElementwiseInput *in, float *out, size_t n) {
    Registers regs;
    Arguments args;
    for (uint32_t k = 0; k < c->n_args; k++) args.from[k] = argument(&in[k], &args.single[k]);
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t some = n - i < BLOCK ? n - i : BLOCK;
        for (uint32_t k = 0; k < c->n_steps; k++) {
            const ElementwiseStep *s = &c->steps[k];
            const Source a = source(&args, regs, s->a, i), b = source(&args, regs, s->b, i);
            steps[s->op](s, a, b, k + 1 == c->n_steps ? out + i : regs[s->to], some);
        }
    }
}

void VEC(ewise_span)(const ElementwiseProgram *c, const ElementwiseInput *in, float *out,
                     size_t n) {
    if (c->n_steps > 1) {
        run_steps(c, in, out, n);
        return;
    }
    const ElementwiseStep *s = &c->steps[0];
    Vf                     single[2];
    const Source           a = argument(&in[s->a - EWISE_ARG], &single[0]);
    const Source           b = s->b < EWISE_ARG ? a : argument(&in[s->b - EWISE_ARG], &single[1]);
    steps[s->op](s, a, b, out, n);
}
