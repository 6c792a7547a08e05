// A run that is told to stop ends within a bounded amount of work, in every operator family, and is
// never taken for a finished one. Work is counted by what was written: outputs are filled with a
// pattern first, and what a stopped kernel wrote is found by it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/merge_sort.h"
#include "base/work_stop.h"
#include "compile/interp/run_ops.h"
#include "compile/program.h"
#include "model/graph.h"
#include "tests/runner.h"

enum { MAX_IN = 4, FILL = 0x5B, LINE = 1 << 20, TOUCHED = 5 * WORK_BLOCK * 8 };

typedef struct Family {
    OpId        op;
    const char *shapes;  // of the inputs, one word each: types f, l (int64), b (bool), and sizes
    int64_t     value;   // of every int64 element
    Attr        attr[2];
    int32_t     version;
} Family;

#define INT(key, x)                                                                                \
    { .name = key, .kind = ATTR_INT, .v.i = (x) }
#define TEXT(key, x)                                                                               \
    {                                                                                              \
        .name = key, .kind = ATTR_STRING, .v.s = { x, sizeof(x) - 1 }                              \
    }

static const int64_t three[2] = {3, 3}, last[1] = {1};

static const Family families[] = {
    {OP_Add, "f,1048576 f,1048576", 0, {{0}}, 14},
    {OP_Relu, "f,1048576", 0, {{0}}, 14},
    {OP_Exp, "f,1048576", 0, {{0}}, 13},
    {OP_Cast, "f,1048576", 0, {INT("to", 11)}, 13},
    {OP_Where, "b,1048576 f,1048576 f,1", 0, {{0}}, 9},
    {OP_Identity, "f,4194304", 0, {{0}}, 13},
    {OP_Transpose, "f,1024,1024", 0, {{0}}, 13},
    {OP_Concat, "f,1048576 f,1048576", 0, {INT("axis", 0)}, 13},
    {OP_Tile, "f,16 l,1", 65536, {{0}}, 13},
    {OP_Expand, "f,1 l,1", 1 << 20, {{0}}, 13},
    {OP_Pad, "f,16 l,2", 524288, {{0}}, 18},
    {OP_Range, "l l l", 0, {{0}}, 11},
    {OP_OneHot, "l,65536 l f,2", 16, {{0}}, 11},
    {OP_Gather, "f,16,16 l,65536", 1, {{0}}, 13},
    {OP_GatherElements, "f,1048576 l,1048576", 1, {{0}}, 13},
    {OP_ReduceSum,
     "f,1024,1024",
     0,
     {{.name = "axes", .kind = ATTR_INTS, .n = 1, .v.ints = last}},
     11},
    {OP_CumSum, "f,1048576 l", 0, {{0}}, 14},
    {OP_ArgMax, "f,4096,256", 0, {INT("axis", 1)}, 13},
    {OP_TopK, "f,1024,1024 l,1", 1024, {{0}}, 11},
    {OP_Softmax, "f,16,65536", 0, {{0}}, 13},
    {OP_LayerNormalization, "f,1024,1024 f,1024", 0, {{0}}, 17},
    {OP_LRN, "f,1,1024,32,32", 0, {INT("size", 5)}, 13},
    {OP_MatMul, "f,1024,64 f,64,1024", 0, {{0}}, 13},
    {OP_Einsum, "f,1024,16 f,16,1024", 0, {TEXT("equation", "ij,jk->ik")}, 12},
    {OP_Conv, "f,1,4,256,256 f,16,4,3,3", 0, {{0}}, 11},
    {OP_ConvTranspose, "f,1,4,256,256 f,4,16,3,3", 0, {{0}}, 11},
    {OP_MaxPool,
     "f,1,16,256,256",
     0,
     {{.name = "kernel_shape", .kind = ATTR_INTS, .n = 2, .v.ints = three}},
     12},
    {OP_Resize, "f,1,1,256,256 f,0 f,0 l,4", 64, {TEXT("mode", "linear")}, 18},
    {OP_LSTM, "f,4096,1,16 f,1,64,16 f,1,64,16", 0, {INT("hidden_size", 16)}, 14},
    {OP_DFT, "f,64,1024,2", 0, {INT("axis", 1)}, 17},
    {OP_RandomNormalLike, "f,1048576", 0, {{0}}, 1},
    {OP_EyeLike, "f,1024,1024", 0, {{0}}, 9},
    {OP_Trilu, "f,1024,1024", 0, {{0}}, 14},
};
enum { N_FAMILIES = sizeof families / sizeof *families };

static WorkFlag stop;

static const char *parse_one(const char *s, Tensor *t) {
    *t = (Tensor){.dtype = *s == 'f' ? DT_F32 : *s == 'l' ? DT_I64 : DT_BOOL};
    for (s++; *s == ',';) {
        int64_t n = 0;
        for (s++; *s >= '0' && *s <= '9'; s++) n = 10 * n + (*s - '0');
        t->dims[t->rank++] = n;
    }
    return *s == ' ' ? s + 1 : s;
}

static void fill(const Family *f, uint32_t i, Tensor *t) {
    for (int64_t k = 0; k < tensor_count(t); k++)
        tensor_set(t, k, t->dtype == DT_I64 ? (double)f->value : (double)(k % 7));
    if (f->op == OP_Range) tensor_set(t, 0, i == 1 ? LINE : i);
    if (f->op == OP_OneHot && i == 0)
        for (int64_t k = 0; k < tensor_count(t); k++) tensor_set(t, k, (double)(k % 16));
}

// Bytes of the output that differ from the pattern, in units of 64.
static int64_t written(const Tensor *t) {
    size_t               bytes = 0;
    const unsigned char *p = t->data;
    int64_t              n = 0;
    assert_int_equal(tensor_measure(t, &bytes), ERR_OK);
    for (size_t i = 0; i + 64 <= bytes; i += 64) {
        bool all = true;
        for (size_t k = 0; k < 64; k++) all = all && p[i + k] == FILL;
        n += all ? 0 : 64;
    }
    return n;
}

static void stops_soon(const Family *f, Arena *a) {
    Tensor        in[MAX_IN], out[3] = {{0}};
    const Tensor *inputs[MAX_IN];
    uint32_t      n = 0;
    for (const char *s = f->shapes; *s != '\0'; n++) {
        s = parse_one(s, &in[n]);
        assert_int_equal(tensor_alloc(&in[n], a), ERR_OK);
        fill(f, n, &in[n]);
        inputs[n] = &in[n];
    }
    bool   two = f->op == OP_TopK;
    Node   node = {.name = "n",
                   .op = f->op,
                   .version = f->version,
                   .n_in = n,
                   .n_out = two ? 2 : 1,
                   .attrs = f->attr,
                   .n_attr = f->attr[0].name != NULL ? 1 : 0};
    OpCall c = {.node = &node, .in = inputs, .scratch = a, .keep = a};
    Err    e = infer_node(&c, out);
    if (e != ERR_OK) fail_msg("%s: %s", op_info(f->op)->name, err_why());
    for (uint32_t i = 0; i < node.n_out; i++) {
        size_t bytes = 0;
        assert_int_equal(tensor_measure(&out[i], &bytes), ERR_OK);
        assert_int_equal(tensor_alloc(&out[i], a), ERR_OK);
        memset(out[i].data, FILL, bytes);
    }
    size_t mark = a->used;
    atomic_store(&stop, WORK_STOP);
    e = run_op(f->op)(&c, out);
    int64_t touched = written(&out[0]);
    if (touched > TOUCHED)
        fail_msg("%s wrote %lld bytes after it was told to stop", op_info(f->op)->name,
                 (long long)touched);
    assert_true(e == ERR_OK || e == ERR_LIMIT);
    arena_rewind(a, mark);
    atomic_store(&stop, WORK_GO);
    assert_int_equal(run_op(f->op)(&c, out), ERR_OK);  // and does it all otherwise
    if (written(&out[0]) <= touched) fail_msg("%s wrote no more", op_info(f->op)->name);
}

static void every_family_stops_soon(void **state) {
    (void)state;
    WorkFlag *before = work_stop_watch(&stop);
    for (int i = 0; i < N_FAMILIES; i++) {
        Arena a;
        assert_int_equal(arena_init_growing(&a, 1 << 20, (size_t)1 << 32), ERR_OK);
        stops_soon(&families[i], &a);
        arena_finish(&a);
    }
    (void)work_stop_watch(before);
}

static void copies_and_loops_end_early(void **state) {
    (void)state;
    static char from[4 << 20], to[4 << 20];
    int64_t     seen = 0;
    memset(from, 1, sizeof from);
    WorkFlag *before = work_stop_watch(&stop);
    WORK_EACH (i, 3 * WORK_BLOCK) {
        seen++;
        if (i == WORK_BLOCK + 5) atomic_store(&stop, WORK_STOP);
    }
    assert_int_equal(seen, 2 * WORK_BLOCK);
    assert_int_equal(work_stop_check(), ERR_LIMIT);
    work_copy(to, from, sizeof to);
    assert_null(memchr(to, 1, sizeof to));
    atomic_store(&stop, WORK_GO);
    work_copy(to, from, sizeof to);
    assert_memory_equal(to, from, sizeof to);
    seen = 0;
    WORK_EACH (i, 3 * WORK_BLOCK + 1) seen += i;
    assert_int_equal(seen, (int64_t)(3 * WORK_BLOCK) * (3 * WORK_BLOCK + 1) / 2);
    (void)work_stop_watch(before);
    assert_int_equal(work_stop_check(), ERR_OK);
}

typedef struct Loop {
    WorkFlag        flag;
    _Atomic int64_t rounds;
    _Atomic pid_t   tid;
} Loop;

static void *loop(void *self) {
    Loop     *l = self;
    WorkFlag *before = work_stop_watch(&l->flag);
    atomic_store(&l->tid, (pid_t)syscall(SYS_gettid));
    while (!work_stopped()) atomic_fetch_add(&l->rounds, 1);
    (void)work_stop_watch(before);
    return NULL;
}

static bool sleeps(const Loop *l) {
    char  path[64], state = 0;
    FILE *f = NULL;
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)atomic_load(&l->tid));
    if (atomic_load(&l->tid) == 0 || (f = fopen(path, "r")) == NULL) return false;
    bool read = fscanf(f, "%*d %*s %c", &state) == 1;
    (void)fclose(f);
    return read && state == 'S';
}

static void wait_asleep(const Loop *l) {
    for (uint32_t i = 0; !sleeps(l); i++) {
        if (i > 100000) fail_msg("the loop does not sleep");
        (void)usleep(100);
    }
}

static void wait_going(Loop *l) {
    int64_t seen = atomic_load(&l->rounds);
    for (uint32_t i = 0; atomic_load(&l->rounds) == seen; i++) {
        if (i > 100000) fail_msg("the loop does not go on");
        (void)usleep(100);
    }
}

// Told to pause it sleeps, told to go it goes on where it was, told to stop it wakes and ends.
static void loops_pause(void **state) {
    (void)state;
    Loop      l = {0};
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, loop, &l), 0);
    for (uint32_t i = 0; i < 3; i++) {
        wait_going(&l);
        work_stop_tell(&l.flag, WORK_PAUSE);
        wait_asleep(&l);
        int64_t seen = atomic_load(&l.rounds);
        (void)usleep(1000);
        assert_int_equal(atomic_load(&l.rounds), seen);
        if (i < 2) work_stop_tell(&l.flag, WORK_GO);
    }
    work_stop_tell(&l.flag, WORK_STOP);
    assert_int_equal(pthread_join(t, NULL), 0);
}

static int by_key(int64_t a, int64_t b, const void *keys) {
    const int64_t *k = keys;
    return (k[a] > k[b]) - (k[a] < k[b]);
}

static void merge_sort_is_stable(void **state) {
    (void)state;
    enum { N = 10007 };
    static int64_t key[N], order[N], spare[N];
    for (int64_t n = 0; n < N; n = 3 * n + 1) {
        for (int64_t i = 0; i < n; i++) {
            key[i] = i * 7919 % 101;
            order[i] = i;
        }
        merge_sort(order, spare, n, by_key, key);
        for (int64_t i = 1; i < n; i++) {
            int64_t a = order[i - 1], b = order[i];
            assert_true(key[a] < key[b] || (key[a] == key[b] && a < b));
        }
    }
}

// Through a program: the run fails, whether a reference step or the tail was stopped.
static void a_stopped_run_has_failed(void **state) {
    (void)state;
    static const OpId ops[] = {OP_CumSum, OP_Tile};
    for (int k = 0; k < 2; k++) {
        Model          m;
        Arena          a;
        Program        p;
        RunMemory      mem;
        ShapedGraph   *s = NULL;
        ProgramOptions o = {.at_least_one_step = true};
        int64_t        n = 4, times = 3;
        float          data[4] = {1, 2, 3, 4};
        assert_int_equal(model_init(&m, "m"), ERR_OK);
        assert_int_equal(arena_init(&a, 1 << 24), ERR_OK);
        Graph   *g = m.graph;
        uint32_t in[2] = {graph_value(g, "x"), graph_value(g, "r")}, y = graph_value(g, "y");
        Tensor   x[2] = {tensor_of(DT_F32, 1, &n, data),
                         tensor_of(DT_I64, k, (int64_t[]){1}, k == 0 ? (int64_t[]){0} : &times)};
        Tensor   shapes[2] = {x[0], x[1]}, out = {0};
        for (int i = 0; i < 2; i++) {
            shapes[i].data = NULL;
            g->values[in[i]].type = shapes[i];
            graph_input(g, in[i]);
        }
        (void)graph_node(g, (Node){.name = "y",
                                   .op = ops[k],
                                   .version = 14,
                                   .n_in = 2,
                                   .n_out = 1,
                                   .in = in,
                                   .out = &y});
        graph_output(g, y);
        assert_int_equal(graph_sort(g), ERR_OK);
        assert_int_equal(shaped_graph_make(g, shapes, interp_eval, &a, &s), ERR_OK);
        assert_int_equal(program_make(&p, s, &o), ERR_OK);
        assert_int_equal(run_memory_init(&mem, &p, 1), ERR_OK);
        for (int told = 0; told < 2; told++) {
            program_begin(&p, &mem, x);
            atomic_store(&mem.stop, told != 0 ? WORK_STOP : WORK_GO);
            for (uint32_t i = 0; i < program_layer_count(&p); i++)
                program_run_layer(&p, &mem, i, 0, 0, 1, &out);
            Err e = program_outputs(&p, &mem, NULL, &out);
            assert_int_equal(e, told ? ERR_LIMIT : ERR_OK);
            if (told) assert_non_null(strstr(err_why(), "stopped: the run took too long"));
        }
        assert_int_equal(work_stop_check(), ERR_OK);
        run_memory_finish(&mem);
        program_finish(&p);
        arena_finish(&a);
        model_finish(&m);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_and_loops_end_early), cmocka_unit_test(loops_pause),
        cmocka_unit_test(merge_sort_is_stable),       cmocka_unit_test(every_family_stops_soon),
        cmocka_unit_test(a_stopped_run_has_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
