// Asset: what a page carries with it, built into the program: Chart.js, our script, our style.
#pragma once

#include <stddef.h>

extern const unsigned char asset_chart_js[], asset_page_js[], asset_page_css[];
extern const size_t        asset_chart_js_bytes, asset_page_js_bytes, asset_page_css_bytes;
