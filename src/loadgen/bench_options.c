// The texts of bench's options: times, models, values for each model, arrivals.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/file.h"
#include "loadgen/bench_int.h"

enum { ARRIVALS_BYTES = 256 << 20 };

Err bench_time(const char *option, const char *text, double bare, TimeNs *out) {
    const struct {
        const char *name;
        double      ns;
    } units[] = {{"", bare}, {"ms", 1e6}, {"us", 1e3}, {"s", 1e9}, {"min", 6e10}};
    char  *end = NULL;
    double v = strtod(text, &end);
    for (size_t i = 0; end != text && i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].name) != 0) continue;
        if (!(v > 0) || v * units[i].ns > 1e17) break;
        *out = (TimeNs)(v * units[i].ns);
        return ERR_OK;
    }
    return err_set(ERR_ARG, "--%s: '%s' is not a time like 50ms, 0.5s or 200us", option, text);
}

static BenchModel *find(Bench *b, const char *name, size_t len) {
    for (uint32_t i = 0; i < b->n_models; i++)
        if (strlen(b->models[i].name) == len && memcmp(b->models[i].name, name, len) == 0)
            return &b->models[i];
    return NULL;
}

static Err add(Bench *b, const char *name, double weight) {
    if (find(b, name, strlen(name)) != NULL)
        return err_set(ERR_ARG, "--models: model '%s' is named twice", name);
    if (b->n_models == BENCH_MODELS)
        return err_set(ERR_ARG, "--models: more than %d models", BENCH_MODELS);
    if (*name == '\0' || strlen(name) > 255)
        return err_set(ERR_ARG, "--models: '%.40s' is not a model name", name);
    b->models[b->n_models++] = (BenchModel){.name = name, .weight = weight};
    return ERR_OK;
}

Err bench_models(const char *text, Arena *a, Bench *b, uint32_t *rated) {
    const char **words = NULL;
    uint32_t     n = 0;
    *rated = 0;
    TRY(option_list_words("models", text, a, &words, &n));
    for (uint32_t i = 0; i < n; i++) {
        const char *colon = strrchr(words[i], ':');
        char       *end = NULL;
        double      rate = colon == NULL ? 1 : strtod(colon + 1, &end);
        if (colon != NULL && (end == colon + 1 || *end != '\0' || !(rate > 0 && rate <= 1e7)))
            return err_set(ERR_ARG, "--models %s: '%s' is not a rate", words[i], colon + 1);
        size_t len = colon == NULL ? strlen(words[i]) : (size_t)(colon - words[i]);
        TRY(add(b, arena_printf(a, "%.*s", (int)len, words[i]), rate));
        *rated += colon != NULL;
    }
    return ERR_OK;
}

Err bench_each(const char *option, const char *text, Arena *a, Bench *b,
               Err (*set)(const char *option, BenchModel *m, const char *value)) {
    const char **words = NULL;
    uint32_t     n = 0;
    if (text == NULL) return ERR_OK;
    TRY(option_list_words(option, text, a, &words, &n));
    for (uint32_t i = 0; i < n; i++) {
        const char *colon = strrchr(words[i], ':');
        for (uint32_t k = 0; colon == NULL && k < b->n_models; k++)
            TRY(set(option, &b->models[k], words[i]));
        if (colon == NULL) continue;
        BenchModel *m = find(b, words[i], (size_t)(colon - words[i]));
        if (m == NULL)
            return err_set(ERR_ARG, "--%s %s: no such model is sent to", option, words[i]);
        TRY(set(option, m, colon + 1));
    }
    return ERR_OK;
}

Err bench_priority(const char *option, BenchModel *m, const char *value) {
    char *end = NULL;
    errno = 0;
    long long v = strtoll(value, &end, 10);
    if (errno != 0 || end == value || *end != '\0' || v < 0)
        return err_set(ERR_ARG, "--%s: '%s' is not a whole number", option, value);
    m->priority = v;
    return ERR_OK;
}

static int by_time(const void *x, const void *y) {
    const BenchArrival *a = x, *b = y;
    return (a->at > b->at) - (a->at < b->at);
}

static Err read_row(const Csv *c, Arena *a, Bench *b, BenchArrival *out) {
    char  *end = NULL;
    double s = strtod(c->field[0], &end);
    if (c->n < 2 || end == c->field[0] || *end != '\0' || !(s >= 0 && s < 1e7))
        return err_set(ERR_PARSE, "%s:%zu: a row is seconds,model", c->name, c->line);
    if (find(b, c->field[1], strlen(c->field[1])) == NULL) {
        Err e = add(b, arena_str(a, c->field[1]), 1);
        if (e != ERR_OK) return err_add(ERR_PARSE, "%s:%zu", c->name, c->line);
    }
    *out = (BenchArrival){(TimeNs)(s * 1e9),
                          (uint32_t)(find(b, c->field[1], strlen(c->field[1])) - b->models)};
    return ERR_OK;
}

Err bench_arrivals(const char *path, Arena *a, Bench *b, BenchArrival **out, uint64_t *n) {
    char    *text = NULL;
    size_t   len = 0;
    uint64_t rows = 1, got = 0;
    Csv      c;
    bool     more = true;
    TRY(file_read(path, ARRIVALS_BYTES, a, &text, &len));
    for (size_t i = 0; i < len; i++) rows += text[i] == '\n';
    BenchArrival *list = arena_try_new(a, BenchArrival, rows);
    if (list == NULL) return err_set(ERR_LIMIT, "%s: too many arrivals", path);
    TRY(csv_open(&c, path, text, len, ',', true));
    for (;;) {
        TRY(csv_next(&c, &more));
        if (!more) break;
        bool header = c.line == 1 && strcmp(c.field[0], "seconds") == 0;
        if (header || (c.n == 1 && c.field[0][0] == '\0')) continue;
        TRY(read_row(&c, a, b, &list[got++]));
    }
    if (got == 0) return err_set(ERR_PARSE, "%s: no arrivals", path);
    qsort(list, got, sizeof *list, by_time);
    *out = list;
    *n = got;
    return ERR_OK;
}
