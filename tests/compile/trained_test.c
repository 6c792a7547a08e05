// Trained networks outside of the repository, if present, run and give their recorded outputs.
// Folder: $COTENANT_MODELS, or ../shared/data/models next to the source.
#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "compile/program.h"
#include "model/fold.h"
#include "model/onnx/onnx.h"
#include "tests/runner.h"

enum { PATH_BYTES = 1024, VALUES_MAX = 16 };

typedef struct Recorded {
    char   name[VALUES_MAX][128];
    Tensor value[VALUES_MAX];
    int    n;
} Recorded;

static const char *folder(void) {
    static char path[PATH_BYTES];
    const char *given = getenv("COTENANT_MODELS"), *src = getenv("SRC");
    (void)snprintf(path, sizeof path, "%s%s",
                   given != NULL ? given
                   : src != NULL ? src
                                 : ".",
                   given != NULL ? "" : "/../shared/data/models");
    return path;
}

static DType type_named(const char *name) {
    for (int t = 1; t < DT_COUNT; t++)
        if (strcmp(dtype_name((DType)t), name) == 0) return (DType)t;
    fail_msg("unknown type %s", name);
    return DT_NONE;
}

// <stem>_K.json describes, <stem>_K.raw holds the numbers, for K from 0 on.
static void read_recorded(const char *dir, const char *stem, Arena *a, Recorded *r) {
    for (r->n = 0; r->n < VALUES_MAX; r->n++) {
        char path[PATH_BYTES + 64];
        (void)snprintf(path, sizeof path, "%s/%s_%d.json", dir, stem, r->n);
        if (access(path, R_OK) != 0) return;
        json_t *about = json_load_file(path, 0, NULL);
        assert_non_null(about);
        Tensor *t = &r->value[r->n];
        *t = (Tensor){.dtype = type_named(json_string_value(json_object_get(about, "dtype")))};
        json_t *shape = json_object_get(about, "shape");
        for (size_t i = 0; i < json_array_size(shape); i++)
            t->dims[t->rank++] = json_integer_value(json_array_get(shape, i));
        (void)snprintf(r->name[r->n], sizeof r->name[0], "%s",
                       json_string_value(json_object_get(about, "name")));
        json_decref(about);
        (void)snprintf(path, sizeof path, "%s/%s_%d.raw", dir, stem, r->n);
        size_t len = 0, bytes = 0;
        char  *data = NULL;
        assert_int_equal(file_read(path, (size_t)1 << 30, a, &data, &len), ERR_OK);
        assert_int_equal(tensor_measure(t, &bytes), ERR_OK);
        assert_int_equal(len, bytes);
        t->data = memcpy(arena_alloc(a, 1, len, TENSOR_ALIGN), data, len);
    }
}

static const Tensor *find(const Recorded *r, const char *name) {
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->name[i], name) == 0) return &r->value[i];
    return NULL;
}

static void compare(const char *model, const Tensor *got, const Tensor *want) {
    assert_true(tensor_same_shape(got, want));
    assert_int_equal(got->dtype, want->dtype);
    if (want->dtype != DT_F32) {
        assert_true(tensor_equal(got, want));
        return;
    }
    const float *x = got->data, *y = want->data;
    double       most = 0, off = 0, xy = 0, xx = 0, yy = 0;
    for (int64_t i = 0; i < tensor_count(want); i++) {
        most = fmax(most, fabs((double)y[i]));
        off = fmax(off, fabs((double)x[i] - (double)y[i]));
        xy += (double)x[i] * (double)y[i];
        xx += (double)x[i] * (double)x[i];
        yy += (double)y[i] * (double)y[i];
    }
    double cosine = xy / sqrt(xx * yy);
    print_message("%s: largest difference %.2e of %.3g, cosine %.6f\n", model, off, most, cosine);
    if (strstr(model, "qdq") != NULL)
        assert_true(cosine >= 0.97);
    else
        assert_true(off <= 1e-3 * most);
}

static void run_model(const char *name, const char *dir) {
    Arena      a = {0};
    Model      m = {0};
    ShapeCache shape_cache;
    char       path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/model.onnx", dir);
    assert_int_equal(arena_init(&a, (size_t)1 << 34), ERR_OK);
    if (onnx_read(path, &m) != ERR_OK) fail_msg("%s", err_why());
    assert_int_equal(fold_constants(&m, interp_eval), ERR_OK);
    shape_cache_init(&shape_cache, &m, interp_eval);
    Recorded in, out;
    read_recorded(dir, "input", &a, &in);
    read_recorded(dir, "output", &a, &out);
    assert_true(in.n > 0 && out.n > 0);
    Tensor *inputs = arena_new(&a, Tensor, m.graph->n_inputs);
    Tensor *outputs = arena_new(&a, Tensor, m.graph->n_outputs);
    for (uint32_t i = 0; i < m.graph->n_inputs; i++) {
        const Tensor *t = find(&in, m.graph->values[m.graph->inputs[i]].name);
        assert_non_null(t);
        inputs[i] = *t;
    }
    const ShapedGraph *s = NULL;
    const InterpLimits limits = {.max_bytes = (size_t)1 << 33, .max_iterations = 100000};
    if (shape_cache_get(&shape_cache, inputs, &s) != ERR_OK) fail_msg("%s", err_why());
    for (int compiled = 0; compiled < 2; compiled++) {
        Err e = compiled == 0
                    ? interp_run(s, inputs, &limits, &a, outputs)
                    : program_run_once(s, inputs, &(ProgramOptions){.limits = limits}, &a, outputs);
        if (e != ERR_OK) fail_msg("%s", err_why());
        for (uint32_t i = 0; i < m.graph->n_outputs; i++) {
            const Tensor *want = find(&out, m.graph->values[m.graph->outputs[i]].name);
            if (want != NULL) compare(name, &outputs[i], want);
        }
    }
    shape_cache_finish(&shape_cache);
    model_finish(&m);
    arena_finish(&a);
}

static void trained_networks_give_their_recorded_outputs(void **state) {
    (void)state;
    DIR *d = opendir(folder());
    assert_non_null(d);
    int n = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char dir[PATH_BYTES], path[PATH_BYTES + 16];
        (void)snprintf(dir, sizeof dir, "%s/%s", folder(), e->d_name);
        (void)snprintf(path, sizeof path, "%s/model.onnx", dir);
        if (access(path, R_OK) != 0) continue;
        run_model(e->d_name, dir);
        n++;
    }
    closedir(d);
    assert_true(n > 0);
}

TEST_MAIN() {
    if (access(folder(), R_OK) != 0) {
        printf("skipped: no trained networks at %s\n", folder());
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trained_networks_give_their_recorded_outputs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
