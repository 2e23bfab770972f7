/* tests/unit/http_live.c -- tests of the page at "/": it equals the file live.html, it loads
 * nothing from other places, and its content security policy allows only its own script and
 * style. */
#include "peer/http/live.h"

#include "peer/http/routes.h"
#include "tests/unit/http_rig.h"

#include <sodium.h>
#include <stdlib.h>

static struct snapshot shot;

static void test_is_the_file(void **state)
{
    (void)state;
    FILE *f = fopen(LIVE_HTML, "rb");
    char *file = malloc(live_html_bytes + 1);
    assert_non_null(f);
    assert_non_null(file);
    assert_int_equal(fread(file, 1, live_html_bytes + 1, f), live_html_bytes);
    assert_memory_equal(file, live_html, live_html_bytes);
    assert_int_equal(strlen(live_html), live_html_bytes);
    fclose(f);
    free(file);
}

/* The page loads nothing but data of the peer, and turns no text into markup or code. */
static void test_loads_nothing(void **state)
{
    (void)state;
    static const char *const absent[] = {
        "https:",         "src=",         "@import",     "url(",      "innerHTML", "outerHTML",
        "insertAdjacent", "document.wri", "eval(",       "Function(", "import(",   "XMLHttpRequest",
        "WebSocket",      "localStorage", "sendBeacon",  " style=",   " onclick",  "cookie",
        "createContext",  "DOMParser",    "setTimeout('"};
    /* The only URL is the namespace of SVG, which no browser fetches. */
    const char *own = strstr(live_html, "http:");
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (strstr(live_html, absent[i]) != NULL)
            fail_msg("found '%s' in the page", absent[i]);
    assert_non_null(own);
    assert_memory_equal(own, "http://www.w3.org/2000/svg\"", 27);
    assert_null(strstr(own + 1, "http:"));
    /* A proxy may serve the page under another path, so the page uses relative URLs. */
    assert_null(strstr(live_html, "fetch(\"/"));
    assert_true(live_html_bytes < 64 * 1024);
}

/* Checks that the content security policy contains the hash of the page's text between <tag> and
 * </tag>, so that browsers accept this script or style. */
static void expect_hash(const char *tag)
{
    char open[16], close[16], sum[sodium_base64_ENCODED_LEN(32, sodium_base64_VARIANT_ORIGINAL)];
    char source[sizeof sum + 64];
    unsigned char hash[crypto_hash_sha256_BYTES];
    snprintf(open, sizeof open, "<%s>", tag);
    snprintf(close, sizeof close, "</%s>", tag);
    const char *from = strstr(live_html, open), *to = strstr(live_html, close);
    assert_true(from != NULL && to != NULL);
    from += strlen(open);
    crypto_hash_sha256(hash, (const unsigned char *)from, (size_t)(to - from));
    sodium_bin2base64(sum, sizeof sum, hash, sizeof hash, sodium_base64_VARIANT_ORIGINAL);
    snprintf(source, sizeof source, "; %s-src 'sha256-%s';", tag, sum);
    if (strstr(live_policy, source) == NULL)
        fail_msg("expected '%s' in '%s'", source, live_policy);
}

static void test_policy(void **state)
{
    (void)state;
    expect_hash("script");
    expect_hash("style");
    assert_memory_equal(live_policy, "default-src 'none'; ", 20);
    assert_non_null(strstr(live_policy, "connect-src 'self'; "));
    assert_non_null(strstr(live_policy, "frame-ancestors 'none'; "));
    assert_non_null(strstr(live_policy, "require-trusted-types-for 'script'"));
    assert_null(strstr(live_policy, "unsafe"));
    assert_null(strstr(live_policy, "*"));
}

/* The page is served even before the node's loop runs. Only the page has a content security
 * policy. */
static void test_route(void **state)
{
    (void)state;
    struct routes r = {0};
    struct routes_answer a;
    memset(&shot, 0, sizeof shot);
    routes_answer(&r, "GET", "/", &shot, RIG_TAKEN_US, &a);
    assert_int_equal(a.status, 200);
    assert_string_equal(a.type, "text/html; charset=utf-8");
    assert_ptr_equal(a.policy, live_policy);
    assert_int_equal(a.body.n, live_html_bytes);
    assert_memory_equal(a.body.p, live_html, live_html_bytes);
    text_close(&a.body);
    routes_answer(&r, "GET", "/status.json", &shot, RIG_TAKEN_US, &a);
    assert_null(a.policy);
    text_close(&a.body);
    routes_answer(&r, "POST", "/", &shot, RIG_TAKEN_US, &a);
    assert_int_equal(a.status, 405);
    assert_null(a.policy);
    text_close(&a.body);
    routes_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_is_the_file),
                                       cmocka_unit_test(test_loads_nothing),
                                       cmocka_unit_test(test_policy), cmocka_unit_test(test_route)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
