#include "eval/run_file.h"

#include "base/file.h"

Err run_file_save(const char *path, json_t *header, const RecordList *records) {
    if (header == NULL) return err_set(ERR_LIMIT, "no memory for the header of the records");
    Err e = record_save(path, header, records);
    json_decref(header);
    return e;
}

Err run_file_save_trace(const char *path, const Timeline *t, const RecordList *records,
                        Arena *scratch) {
    AtomicFile f;
    TRY(file_begin(&f, path));
    Err e = timeline_write(f.out, t, records, scratch);
    if (e == ERR_OK) e = file_commit(&f);
    file_drop(&f);
    return e;
}

json_t *run_file_sets(const ArgList *sets) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < sets->n; i++) json_array_append_new(list, json_string(sets->at[i]));
    return list;
}
