// HTTP/1.1 responses from untrusted servers are parsed the same whole and in pieces.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "net/response_parser.h"
#include "tests/fuzz/fuzz.h"

static Err take_all(ResponseParser *r, const char *text, size_t len, size_t piece) {
    *r = (ResponseParser){.head_most = 512, .body = {.most = 2048}};
    response_parser_begin(r, 256);
    for (size_t at = 0; at < len && r->step != RESPONSE_DONE;) {
        size_t n = len - at < piece ? len - at : piece, used = 0;
        char  *copy = malloc(n);  // so that a sanitizer sees the first byte read past it
        CHECK(copy != NULL);
        memcpy(copy, text + at, n);
        Err e = response_parser_take(r, copy, n, &used);
        free(copy);
        if (e != ERR_OK) return e;
        CHECK(used <= n && (used == n || r->step == RESPONSE_DONE));
        at += used;
    }
    return response_parser_end(r);
}

FUZZ_TARGET(data, size) {
    ResponseParser whole, parts;
    if (size < 1) return 0;
    Err a = take_all(&whole, (const char *)data + 1, size - 1, SIZE_MAX);
    Err b = take_all(&parts, (const char *)data + 1, size - 1, (size_t)data[0] % 40 + 1);
    CHECK((a == ERR_OK) == (b == ERR_OK));
    if (a == ERR_OK) {
        CHECK(whole.status == parts.status && whole.close == parts.close);
        CHECK(whole.json_len == parts.json_len && whole.body.len == parts.body.len);
        CHECK(whole.body.kept == parts.body.kept);
        if (whole.body.kept > 0) CHECK(memcmp(whole.body.at, parts.body.at, whole.body.kept) == 0);
    }
    response_parser_finish(&whole);
    response_parser_finish(&parts);
    return 0;
}
