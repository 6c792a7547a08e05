// Feeds text to the reader of run records; what it accepts must read the same when written again.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/record.h"
#include "tests/fuzz/fuzz.h"

static char *write_all(json_t *header, const RecordList *l, size_t *len) {
    char *text = NULL;
    FILE *f = open_memstream(&text, len);
    if (f == NULL || record_write_header(f, header) != ERR_OK) abort();
    for (uint32_t i = 0; i < l->n; i++)
        if (record_write(f, &l->at[i]) != ERR_OK) abort();
    if (fclose(f) != 0) abort();
    return text;
}

FUZZ_TARGET(data, size) {
    Arena      a;
    json_t    *header = NULL, *again = NULL;
    RecordList l, back;
    size_t     len = 0;
    if (arena_init(&a, (size_t)1 << 28) != ERR_OK) abort();
    if (record_parse("fuzz", (const char *)data, size, &a, &header, &l) == ERR_OK) {
        char *text = write_all(header, &l, &len);
        if (record_parse("again", text, len, &a, &again, &back) != ERR_OK) abort();
        if (back.n != l.n) abort();
        for (uint32_t i = 0; i < l.n; i++)
            if (l.at[i].at != back.at[i].at || l.at[i].versions != back.at[i].versions) abort();
        free(text);
        json_decref(header);
        json_decref(again);
    }
    arena_finish(&a);
    return 0;
}
