#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "eval/run_file.h"

enum { FILE_BYTES_MAX = 1 << 30 };

static Err write_all(FILE *f, const json_t *options, const JobEventLog *d) {
    json_t *header = json_pack("{s:s,s:s,s:O}", "run", "cluster", "version", COTENANT_VERSION,
                               "options", options);
    if (header == NULL) return err_set(ERR_LIMIT, "no memory for the header of the records");
    int wrong = json_dumpf(header, f, JSON_COMPACT);
    json_decref(header);
    if (wrong != 0) return err_set(ERR_IO, "writing a record failed");
    fputc('\n', f);
    job_event_log_write(d, f);
    return ERR_OK;
}

Err cluster_run_file_write(const char *path, const json_t *options, const JobEventLog *d) {
    AtomicFile f;
    TRY(file_begin(&f, path));
    Err e = write_all(f.out, options, d);
    if (e == ERR_OK) e = file_commit(&f);
    file_drop(&f);
    return e;
}

static Err read_header(const char *path, const json_t *header, json_t **options) {
    const char *run;
    TRY(json_get_text(header, "run", &run));
    if (strcmp(run, "cluster") != 0)
        return err_set(ERR_PARSE, "%s: records of a %s, not of a cluster", path, run);
    TRY(json_get_array(header, "options", options));
    json_incref(*options);
    return ERR_OK;
}

Err cluster_run_file_read(const char *path, Arena *a, json_t **options) {
    char   *text;
    size_t  len;
    json_t *header = NULL;
    TRY(file_read(path, FILE_BYTES_MAX, a, &text, &len));
    const char *end = memchr(text, '\n', len);
    TRY(json_parse(path, text, end != NULL ? (size_t)(end - text) : len, &header));
    Err e = read_header(path, header, options);
    json_decref(header);
    return e;
}

Err cluster_run_file_check(const char *path, const json_t *options, const JobEventLog *d,
                           Arena *scratch) {
    char  *was, *is = NULL;
    size_t was_len, is_len = 0;
    TRY(file_read(path, FILE_BYTES_MAX, scratch, &was, &was_len));
    FILE *f = open_memstream(&is, &is_len);
    if (f == NULL) return err_set(ERR_LIMIT, "no memory to compare with %s", path);
    Err  e = write_all(f, options, d);
    bool closed = fclose(f) == 0;
    bool same = closed && is_len == was_len && memcmp(is, was, is_len) == 0;
    free(is);
    TRY(e);
    if (same) return ERR_OK;
    return err_set(ERR_ARG,
                   "%s: the same options give another run now: the trace, the weights or this "
                   "program changed since",
                   path);
}
