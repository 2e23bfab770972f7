/* tests/unit/report_text.c -- strangers' words in HTML and CSV, and pictures on their way into a page:
 * peer/report/text.h, svg.h. */
#include "peer/report/svg.h"
#include "peer/report/text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct report_text t;

static const char *html(const char *text)
{
    report_text_close(&t);
    report_text_put(&t, "");
    report_text_html(&t, text);
    assert_false(t.broken);
    return t.bytes;
}

static const char *csv(const char *text)
{
    report_text_close(&t);
    report_text_put(&t, "");
    report_text_csv(&t, text);
    return t.bytes;
}

static void test_html(void **state)
{
    (void)state;
    assert_string_equal(html("plain"), "plain");
    assert_string_equal(html(""), "");
    assert_string_equal(html("<script>alert(\"1\")&'"),
                        "&lt;script&gt;alert(&quot;1&quot;)&amp;&#39;");
    assert_string_equal(html("a\nb\x7f\x1b[2J"), "a?b??[2J");
    assert_string_equal(html("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
                        "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
    /* Overlong, a surrogate, above the last, alone, cut off, a control of two bytes. */
    assert_string_equal(html("\xc0\xbc"), "??");
    assert_string_equal(html("\xed\xa0\x80"), "???");
    assert_string_equal(html("\xf4\x90\x80\x80"), "????");
    assert_string_equal(html("\x80<"), "?&lt;");
    assert_string_equal(html("\xe2\x82"), "??");
    assert_string_equal(html("\xc2\x85"), "?");
}

/* Whatever comes in, nothing that HTML knows goes out. */
static void test_html_random(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        char text[9];
        for (size_t k = 0; k < 8; k++) {
            seed = seed * 1664525 + 1013904223;
            text[k] = (char)(seed >> 24);
        }
        text[8] = '\0';
        assert_null(strpbrk(html(text), "<>\"'"));
    }
}

static void test_csv(void **state)
{
    (void)state;
    assert_string_equal(csv("plain"), "plain");
    assert_string_equal(csv(""), "");
    assert_string_equal(csv("a,b"), "\"a,b\"");
    assert_string_equal(csv("a\"b"), "\"a\"\"b\"");
    assert_string_equal(csv("a\r\nb"), "\"a\r\nb\"");
    assert_string_equal(csv("=1+1"), "'=1+1");
    assert_string_equal(csv("@x,"), "\"'@x,\"");
    assert_string_equal(csv("-1.5e3"), "-1.5e3");
    assert_string_equal(csv("-1+1"), "'-1+1");
}

static void test_number(void **state)
{
    (void)state;
    static const double numbers[] = {0,          1,     0.1,     1e-7,   123456789,
                                     0.99380001, 1e300, -2.5e-9, 0x1p53, 1.0 / 3};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        report_text_close(&t);
        report_text_number(&t, numbers[i]);
        assert_true(strtod(t.bytes, NULL) == numbers[i]);
    }
    report_text_close(&t);
    report_text_number(&t, (double)NAN);
    report_text_number(&t, (double)INFINITY);
    assert_int_equal(t.n, 0);
}

/* ---- Pictures ---- */

static bool embeds(const char *drawn)
{
    report_text_close(&t);
    report_text_put(&t, "");
    return report_svg_embed(&t, drawn, strlen(drawn), "p7");
}

static void test_svg(void **state)
{
    (void)state;
    assert_true(embeds("<?xml version=\"1.0\"?><!DOCTYPE svg PUBLIC \"x\" \"http://h/d\">\n"
                       "<!-- c --><svg width='1'><!-- http://h --><g id=\"a\"><use "
                       "xlink:href='#b' id='c'/><i filter=\"url(#d)\"/></g></svg>\n rest"));
    assert_string_equal(t.bytes, "<svg width='1'><g id=\"p7a\"><use xlink:href='#p7b' id='p7c'/><i "
                                 "filter=\"url(#p7d)\"/></g></svg>");
    assert_true(embeds("<svg><svg></svg></svg>"));
    assert_string_equal(t.bytes, "<svg><svg></svg></svg>");
}

static void test_svg_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "gnuplot: cannot",
        "<svg>",
        "</svg>",
        "<svg><script>x</script></svg>",
        "<svg><SCRIPT/></svg>",
        "<svg><image href='#a'/></svg>",
        "<svg><a href='#a'>x</a></svg>",
        "<svg><use xlink:href='http://h/x#y'/></svg>",
        "<svg><use href=\"//h\"/></svg>",
        "<svg><use href='#a'/><foreignObject/></svg>",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(embeds(bad[i]));
        assert_int_equal(t.n, 0);
    }
    assert_false(report_svg_embed(&t, "<svg>\0</svg>", 12, "p"));
}

static int close_text(void **state)
{
    (void)state;
    report_text_close(&t);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_html), cmocka_unit_test(test_html_random),
        cmocka_unit_test(test_csv),  cmocka_unit_test(test_number),
        cmocka_unit_test(test_svg),  cmocka_unit_test(test_svg_refused),
    };
    return cmocka_run_group_tests(tests, NULL, close_text);
}
