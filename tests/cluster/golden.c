#include "tests/cluster/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"

enum { GOLDEN_BYTES = 64 << 20 };

static void read_row(char *line, GoldenRow *row) {
    char *rest = line;
    for (int c = 0; rest && c < GOLDEN_COLUMNS; c++) {
        const char *cell = strsep(&rest, ",");
        row->at[c] = strtod(cell, NULL);
        if (c == 1) snprintf(row->word, sizeof row->word, "%s", cell);
    }
}

static const char *golden_path(const char *name, Arena *a) {
    const char *data = getenv("COTENANT_CLUSTER_DATA"), *src = getenv("SRC");
    if (data) return arena_printf(a, "%s/%s", data, name);
    return arena_printf(a, "%s/../shared/data/cluster/%s", src ? src : ".", name);
}

bool golden_read(const char *name, bool has_header, Arena *a, Golden *out) {
    char  *text;
    size_t len;
    if (file_read(golden_path(name, a), GOLDEN_BYTES, a, &text, &len) != ERR_OK) return false;
    uint32_t lines = 0;
    for (size_t i = 0; i < len; i++) lines += text[i] == '\n';
    *out = (Golden){.rows = arena_new(a, GoldenRow, lines + 1)};
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        bool skipped = !*line || (has_header && line == text);
        if (!skipped) read_row(line, &out->rows[out->n++]);
    }
    CHECK(out->n > 0);
    return true;
}
