#include "base/utf8.h"

typedef struct Range {
    uint32_t first, last;
} Range;

static const Range zero[] = {
    {0x300, 0x36F},   {0x483, 0x489},   {0x591, 0x5BD},     {0x610, 0x61A},    {0x64B, 0x65F},
    {0x900, 0x902},   {0xE31, 0xE31},   {0xE34, 0xE3A},     {0xE47, 0xE4E},    {0x1AB0, 0x1AFF},
    {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x2060, 0x2064},   {0x20D0, 0x20FF},  {0xFE00, 0xFE0F},
    {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0x1F3FB, 0x1F3FF}, {0xE0001, 0xE01EF}};

static const Range wide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x23E9, 0x23EC},  {0x2E80, 0x303E}, {0x3041, 0x33FF},
    {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},  {0xA960, 0xA97C}, {0xAC00, 0xD7A3},
    {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},  {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F},
    {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};

static bool within(const Range *ranges, size_t n, uint32_t point) {
    for (size_t i = 0; i < n; i++)
        if (point >= ranges[i].first && point <= ranges[i].last) return true;
    return false;
}

uint32_t utf8_next(const char **at, const char *end) {
    const unsigned char *s = (const unsigned char *)*at;
    size_t               left = (size_t)(end - *at);
    (*at)++;
    if (s[0] < 0x80) return s[0];
    size_t   more = s[0] >= 0xF0 ? 3 : s[0] >= 0xE0 ? 2 : 1;
    uint32_t point = s[0] & (0x3Fu >> more);
    if (s[0] < 0xC2 || s[0] > 0xF4 || left <= more) return UTF8_BAD;
    for (size_t i = 1; i <= more; i++) {
        if ((s[i] & 0xC0) != 0x80) return UTF8_BAD;
        point = point << 6 | (s[i] & 0x3Fu);
    }
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (point < least[more] || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF))
        return UTF8_BAD;
    *at += more;
    return point;
}

size_t utf8_put(uint32_t point, char out[4]) {
    if (point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) point = 0xFFFD;
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    size_t more = point >= 0x10000 ? 3 : point >= 0x800 ? 2 : 1;
    for (size_t i = more; i > 0; i--, point >>= 6) out[i] = (char)(0x80 | (point & 0x3F));
    static const unsigned char lead[] = {0, 0xC0, 0xE0, 0xF0};
    out[0] = (char)(lead[more] | point);
    return more + 1;
}

bool utf8_ok(const char *s, size_t len) {
    const char *end = s + len;
    while (s < end)
        if (utf8_next(&s, end) == UTF8_BAD) return false;
    return true;
}

bool utf8_control(uint32_t point) {  // also line separators and direction overrides
    return point < 0x20 || (point >= 0x7F && point <= 0x9F) || point == 0x2028 || point == 0x2029 ||
           (point >= 0x202A && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069);
}

uint32_t utf8_width(uint32_t point) {
    if (point < 0x300) return 1;
    if (within(zero, sizeof zero / sizeof *zero, point)) return 0;
    return within(wide, sizeof wide / sizeof *wide, point) ? 2 : 1;
}
