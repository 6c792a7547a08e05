// Programs of one model for many input shapes: they share packed weights, and each gives the
// reference's answer, in its own memory and in that of a program for larger shapes.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "compile/program.h"
#include "tests/compile/open_model.h"
#include "tests/runner.h"

enum { LENGTHS = 128, PARTS = 2 };

typedef struct Open {
    Model          model;
    PackedWeights *packed;
    const Isa     *isa;
    Team          *team;
} Open;

typedef struct Shaped {
    Arena        arena;
    ShapedGraph *graph;
    Program      program;
    Tensor       in;
} Shaped;

static void setup(Open *o, void (*build)(Graph *g), const Isa *isa) {
    *o = (Open){.isa = isa};
    if (isa == NULL) assert_int_equal(isa_choose(&o->isa), ERR_OK);
    if (open_model_make(&o->model, build) != ERR_OK) fail_msg("%s", err_why());
    assert_int_equal(packed_weights_create(&o->packed, &o->model.arena), ERR_OK);
    assert_int_equal(team_create(&o->team, PARTS, NULL), ERR_OK);
}

static void teardown(Open *o) {
    team_destroy(o->team);
    packed_weights_destroy(o->packed);
    model_finish(&o->model);
}

static void fill(Tensor *t, Arena *a) {
    Rng r = {(uint64_t)tensor_count(t)};
    assert_int_equal(tensor_alloc(t, a), ERR_OK);
    for (int64_t i = 0; i < tensor_count(t); i++)
        if (t->dtype == DT_F32)
            ((float *)t->data)[i] = 2 * rng_unit(&r) - 1;
        else
            ((int64_t *)t->data)[i] = (int64_t)rng_below(&r, OPEN_WORDS);
}

static void compile(Open *o, Shaped *s, Tensor in, const Program *like) {
    assert_int_equal(arena_init_growing(&s->arena, 1 << 20, (size_t)1 << 34), ERR_OK);
    s->in = in;
    fill(&s->in, &s->arena);
    if (shaped_graph_make(o->model.graph, &in, interp_eval, &s->arena, &s->graph) != ERR_OK)
        fail_msg("%s", err_why());
    ProgramOptions q = {.isa = o->isa, .packed = o->packed, .like = like};
    if (program_make(&s->program, s->graph, &q) != ERR_OK) fail_msg("%s", err_why());
}

static void finish(Shaped *s) {
    program_finish(&s->program);
    arena_finish(&s->arena);
}

static void check(Open *o, Shaped *s, RunMemory *mem) {
    Tensor want, got;
    assert_int_equal(interp_run(s->graph, &s->in, &(InterpLimits){0}, &s->arena, &want), ERR_OK);
    for (int parts = 0; parts < 2; parts++) {
        if (program_run(&s->program, mem, parts == 0 ? NULL : o->team, &s->in, NULL, &got) !=
            ERR_OK)
            fail_msg("%s", err_why());
        assert_true(tensor_same_shape(&want, &got));
        const float *a = want.data, *b = got.data;
        float        most = 1e-3f;
        for (int64_t i = 0; i < tensor_count(&want); i++) most = fmaxf(most, fabsf(a[i]));
        for (int64_t i = 0; i < tensor_count(&want); i++)
            if (!(fabsf(a[i] - b[i]) <= 5e-4f * most))
                fail_msg("%lld x %lld on %s: element %lld is %g, not %g", (long long)s->in.dims[0],
                         (long long)s->in.dims[1], o->isa->name, (long long)i, (double)b[i],
                         (double)a[i]);
    }
}

static void check_alone(Open *o, Tensor in) {
    Shaped    s;
    RunMemory mem;
    compile(o, &s, in, NULL);
    assert_int_equal(run_memory_init(&mem, &s.program, PARTS), ERR_OK);
    check(o, &s, &mem);
    run_memory_finish(&mem);
    finish(&s);
}

static Tensor ids(int64_t batch, int64_t length) {
    return tensor_of(DT_I64, 2, (int64_t[]){batch, length}, NULL);
}

static Tensor image(int64_t height, int64_t width) {
    return tensor_of(DT_F32, 4, (int64_t[]){1, 3, height, width}, NULL);
}

// Weights are packed for the first length and for no other.
static void lengths_share_weights(void **state) {
    (void)state;
    Open o;
    setup(&o, open_encoder, NULL);
    check_alone(&o, ids(1, 1));
    size_t packed = packed_weights_bytes(o.packed);
    assert_true(packed > (size_t)2 * (4 + 6) * OPEN_WIDTH * OPEN_WIDTH * sizeof(float));
    for (int64_t n = 2; n <= LENGTHS; n++) {
        check_alone(&o, ids(1, n));
        if (packed_weights_bytes(o.packed) != packed)
            fail_msg("length %lld packs %zu bytes more", (long long)n,
                     packed_weights_bytes(o.packed) - packed);
    }
    teardown(&o);
}

// A program of its own has the weights; one that shares them has steps alone.
static void programs_have_no_weights(void **state) {
    (void)state;
    Open   o;
    Shaped own, shared;
    setup(&o, open_image, NULL);
    compile(&o, &shared, image(20, 20), NULL);
    PackedWeights *packed = o.packed;
    size_t         bytes = packed_weights_bytes(packed);
    o.packed = NULL;
    compile(&o, &own, image(20, 20), NULL);
    assert_true(own.program.weight_bytes >= shared.program.weight_bytes + bytes / 2);
    finish(&own);
    finish(&shared);
    o.packed = packed;
    teardown(&o);
}

static void other_instruction_sets_too(void **state) {
    (void)state;
    const Isa *all[] = {&isa_baseline, NULL};
    for (int i = 0; i < 2; i++) {
        Open o;
        setup(&o, open_encoder, all[i]);
        for (int64_t n = 1; n <= LENGTHS; n += n < 20 ? 3 : 27) check_alone(&o, ids(2, n));
        teardown(&o);
        setup(&o, open_lstm, all[i]);
        for (int64_t n = 1; n < 9; n++)
            check_alone(&o, tensor_of(DT_F32, 3, (int64_t[]){n, 1 + n % 3, 9}, NULL));
        teardown(&o);
    }
}

// Smaller shapes run in the memory, the layers and the version numbers of a larger one.
static void in_the_memory_of_larger_shapes(void **state) {
    (void)state;
    Open      o;
    Shaped    large, small;
    RunMemory mem;
    setup(&o, open_encoder, NULL);
    compile(&o, &large, ids(4, 48), NULL);
    assert_int_equal(run_memory_init(&mem, &large.program, PARTS), ERR_OK);
    for (int64_t batch = 2; batch <= 4; batch++)
        for (int64_t n = 33; n <= 48; n += batch) {
            compile(&o, &small, ids(batch, n), &large.program);
            assert_true(program_fits(&small.program, &large.program));
            check(&o, &small, &mem);
            finish(&small);
        }
    compile(&o, &small, ids(4, 49), &large.program);
    assert_false(program_fits(&small.program, &large.program));
    finish(&small);
    run_memory_finish(&mem);
    finish(&large);
    teardown(&o);
}

// As in a server: each length runs in the memory of a rounded one and takes over its versions,
// which come from length 1.
static void each_length_like_a_rounded_one(void **state) {
    (void)state;
    Open      o;
    Shaped    first, rounded, exact;
    RunMemory mem;
    setup(&o, open_encoder, NULL);
    compile(&o, &first, ids(1, 1), NULL);
    for (int64_t n = 1, most = 2; most <= LENGTHS; most *= 2) {
        compile(&o, &rounded, ids(1, most), &first.program);
        assert_int_equal(run_memory_init(&mem, &rounded.program, PARTS), ERR_OK);
        for (; n <= most; n++) {
            compile(&o, &exact, ids(1, n), &rounded.program);
            if (program_fits(&exact.program, &rounded.program))
                check(&o, &exact, &mem);
            else
                assert_true(n == 1);
            finish(&exact);
        }
        run_memory_finish(&mem);
        finish(&rounded);
    }
    finish(&first);
    teardown(&o);
}

static void images_of_all_sizes(void **state) {
    (void)state;
    const Isa *all[] = {&isa_baseline, NULL};
    for (int i = 0; i < 2; i++) {
        Open      o;
        Shaped    large, small;
        RunMemory mem;
        setup(&o, open_image, all[i]);
        compile(&o, &large, image(48, 48), NULL);
        assert_int_equal(run_memory_init(&mem, &large.program, PARTS), ERR_OK);
        for (int64_t h = 2; h <= 48; h += 11)
            for (int64_t w = 4; w <= 48; w += 13) {
                check_alone(&o, image(h, w));
                compile(&o, &small, image(h, w), &large.program);
                if (program_fits(&small.program, &large.program)) check(&o, &small, &mem);
                finish(&small);
            }
        compile(&o, &small, image(41, 46), &large.program);
        assert_true(program_fits(&small.program, &large.program));
        finish(&small);
        run_memory_finish(&mem);
        finish(&large);
        teardown(&o);
    }
}

// All versions of a measured program are taken over, or replaced by one that the shape has.
static void versions_come_from_another_program(void **state) {
    (void)state;
    Open   o;
    Shaped large, small;
    setup(&o, open_image, NULL);
    compile(&o, &large, image(64, 64), NULL);
    for (uint32_t i = 0; i < large.program.n_steps; i++) {
        Step *s = &large.program.steps[i];
        if (s->key == NULL) continue;
        s->n_versions = s->kind->versions(s, &large.program.caches, s->versions, PROFILE_KEPT);
    }
    compile(&o, &small, image(5, 60), &large.program);
    assert_true(program_same_layers(&small.program, &large.program));
    RunMemory mem;
    assert_int_equal(run_memory_init(&mem, &small.program, PARTS), ERR_OK);
    for (uint32_t v = 0; v < PROFILE_KEPT; v++) {
        for (uint32_t i = 0; i < small.program.n_steps; i++) {
            Step *s = &small.program.steps[i];
            assert_int_equal(s->n_versions, large.program.steps[i].n_versions);
            Version first = s->versions[0];
            if (v < s->n_versions) s->versions[0] = s->versions[v], s->versions[v] = first;
        }
        check(&o, &small, &mem);
    }
    run_memory_finish(&mem);
    finish(&small);
    finish(&large);
    teardown(&o);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_share_weights),
        cmocka_unit_test(programs_have_no_weights),
        cmocka_unit_test(other_instruction_sets_too),
        cmocka_unit_test(in_the_memory_of_larger_shapes),
        cmocka_unit_test(each_length_like_a_rounded_one),
        cmocka_unit_test(images_of_all_sizes),
        cmocka_unit_test(versions_come_from_another_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
