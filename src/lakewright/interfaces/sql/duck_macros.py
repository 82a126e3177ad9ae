"""Macros with which DuckDB computes what Spark does; their names begin with ``lw_``."""

#: A moment in text, as Spark reads it: date, time of the day, zone.
_MOMENT = (
    r"^\s*\d{4}(-\d{1,2}(-\d{1,2}([ T]\d{1,2}:\d{1,2}(:\d{1,2}(\.\d{1,9})?)?"
    r"\s*(Z|UTC|[+-]\d{1,2}(:\d{2})?)?)?)?)?\s*$"
)
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"

MACROS = (
    # Texts.
    "lw_from(s, p) AS CASE WHEN p > 0 THEN p::BIGINT - 1 WHEN p < 0 THEN length(s) + p::BIGINT "
    "ELSE 0 END",
    "lw_substr(s, p, n) AS CASE WHEN s IS NULL OR p IS NULL OR n IS NULL THEN NULL ELSE "
    "substring(s, greatest(lw_from(s, p), 0) + 1, greatest(lw_from(s, p) + n::BIGINT "
    "- greatest(lw_from(s, p), 0), 0)) END",
    "lw_left(s, n) AS lw_substr(s, 1, greatest(n, 0))",
    "lw_right(s, n) AS CASE WHEN n <= 0 AND s IS NOT NULL THEN '' "
    "ELSE lw_substr(s, -n, 2147483647) END",
    "lw_lpad(s, n, p) AS CASE WHEN n <= 0 AND s IS NOT NULL AND p IS NOT NULL THEN '' "
    "WHEN p = '' THEN lw_left(s, n) ELSE lpad(s, n, p) END",
    "lw_rpad(s, n, p) AS CASE WHEN n <= 0 AND s IS NOT NULL AND p IS NOT NULL THEN '' "
    "WHEN p = '' THEN lw_left(s, n) ELSE rpad(s, n, p) END",
    "lw_locate(x, s, p) AS CASE WHEN p IS NULL OR p < 1 THEN 0 "
    "WHEN instr(substring(s, p), x) = 0 THEN 0 ELSE instr(substring(s, p), x) + p - 1 END",
    "lw_replace(s, x, y) AS CASE WHEN x = '' THEN s ELSE replace(s, x, y) END",
    # Numbers in text: as Java writes them.
    "lw_exponent(t) AS coalesce(TRY_CAST(split_part(t, 'e', 2) AS INTEGER), 0) + CASE "
    "WHEN t[1] <> '0' THEN length(split_part(split_part(t, 'e', 1), '.', 1)) - 1 "
    "ELSE -1 - (length(split_part(split_part(t, 'e', 1), '.', 2)) "
    "- length(ltrim(split_part(split_part(t, 'e', 1), '.', 2), '0'))) END",
    "lw_digits(t) AS rtrim(ltrim(replace(split_part(t, 'e', 1), '.', ''), '0'), '0')",
    "lw_scientific(t) AS lw_digits(t)[1] || '.' || CASE WHEN length(lw_digits(t)) > 1 "
    "THEN lw_digits(t)[2:] ELSE '0' END || 'E' || lw_exponent(t)",
    "lw_text(x) AS CASE WHEN x IS NULL THEN NULL WHEN isnan(x) THEN 'NaN' "
    "WHEN isinf(x) THEN CASE WHEN x > 0 THEN 'Infinity' ELSE '-Infinity' END "
    "WHEN x = 0 OR (abs(x) >= 1e-3 AND abs(x) < 1e7) THEN x::VARCHAR "
    "ELSE CASE WHEN x < 0 THEN '-' ELSE '' END || lw_scientific(abs(x)::VARCHAR) END",
    # Texts read as something else: null where Spark cannot read them.
    r"lw_whole(s) AS CASE WHEN regexp_matches(trim(s, ' \t\n\r'), '^[+-]?\d+$') "
    r"THEN trim(s, ' \t\n\r') END".replace(r"' \t\n\r'", "' ' || chr(9) || chr(10) || chr(13)"),
    "lw_number(s) AS CASE WHEN regexp_matches(trim(s), '" + _NUMBER + "') THEN trim(s) END",
    "lw_double(s) AS CASE WHEN regexp_matches(rtrim(trim(s), 'dDfF'), '" + _NUMBER + "') "
    "AND length(trim(s)) - length(rtrim(trim(s), 'dDfF')) < 2 "
    "THEN TRY_CAST(rtrim(trim(s), 'dDfF') AS DOUBLE) ELSE CASE lower(trim(s)) "
    "WHEN 'nan' THEN 'nan'::DOUBLE "
    "WHEN 'inf' THEN 'inf'::DOUBLE WHEN '+inf' THEN 'inf'::DOUBLE "
    "WHEN 'infinity' THEN 'inf'::DOUBLE WHEN '+infinity' THEN 'inf'::DOUBLE "
    "WHEN '-inf' THEN '-inf'::DOUBLE WHEN '-infinity' THEN '-inf'::DOUBLE END END",
    "lw_boolean(s) AS CASE WHEN lower(trim(s)) IN ('t', 'true', 'y', 'yes', '1') THEN true "
    "WHEN lower(trim(s)) IN ('f', 'false', 'n', 'no', '0') THEN false END",
    r"lw_day(t) AS TRY_CAST(t || CASE length(t) - length(replace(t, '-', '')) WHEN 0 THEN '-01-01' "
    "WHEN 1 THEN '-01' ELSE '' END AS DATE)",
    r"lw_date(s) AS CASE WHEN regexp_matches(s, '^\s*\d{4}(-\d{1,2}(-\d{1,2}([ T].*)?)?)?\s*$') "
    r"THEN lw_day(regexp_extract(s, '^\s*([0-9-]+)', 1)) END",
    "lw_clock(s) AS regexp_extract(s, '[ T](\\d{1,2}:\\d{1,2}(:\\d{1,2}(\\.\\d{1,6})?)?)', 1)",
    "lw_seconds(t) AS split_part(t, ':', 1)::BIGINT * 3600000000 "
    "+ split_part(t, ':', 2)::BIGINT * 60000000 "
    "+ CAST(coalesce(nullif(split_part(t, ':', 3), ''), '0')::DECIMAL(18,6) * 1000000 AS BIGINT)",
    "lw_in_day(t) AS split_part(t, ':', 1)::INTEGER < 24 AND split_part(t, ':', 2)::INTEGER < 60 "
    "AND coalesce(nullif(split_part(t, ':', 3), ''), '0')::DECIMAL(18,6) < 60",
    r"lw_zone(s) AS regexp_extract(s, ':.*([+-]\d{1,2}(:\d{2})?)\s*$', 1)",
    "lw_offset(z) AS CASE WHEN z = '' THEN 0 ELSE (CASE WHEN z[1] = '-' THEN -1 ELSE 1 END) "
    "* (split_part(z[2:], ':', 1)::BIGINT * 3600 + "
    "coalesce(nullif(split_part(z[2:], ':', 2), ''), '0')::BIGINT * 60) * 1000000 END",
    "lw_moment(s) AS CASE WHEN NOT regexp_matches(s, '" + _MOMENT + "') THEN NULL "
    "WHEN lw_clock(s) = '' THEN make_timestamp(epoch_us(lw_date(s)::TIMESTAMP)) "
    "WHEN NOT lw_in_day(lw_clock(s)) THEN NULL "
    "ELSE make_timestamp(epoch_us(lw_date(s)::TIMESTAMP) + lw_seconds(lw_clock(s)) "
    "- lw_offset(lw_zone(s))) END",
    "lw_parsed(s, p, f) AS CASE WHEN regexp_full_match(s, p) THEN try_strptime(s, f) END",
    # Moments.
    "lw_at(n) AS make_timestamp(n::BIGINT * 1000000)",
    "lw_floor_div(a, n) AS (a - ((a % n) + n) % n) // n",
    "lw_next_day(d, n) AS CAST(d + CAST((n - isodow(d) + 6) % 7 + 1 AS INTEGER) AS DATE)",
    "lw_month(t) AS year(t) * 12 + month(t)",
    "lw_months(a, b) AS CASE WHEN day(a) = day(b) OR (last_day(a) = a::DATE "
    "AND last_day(b) = b::DATE) THEN CAST(lw_month(a) - lw_month(b) AS DOUBLE) ELSE "
    "round((lw_month(a) - lw_month(b)) + ((day(a) - day(b)) * 86400.0 "
    "+ date_diff('second', date_trunc('day', a), date_trunc('second', a)) "
    "- date_diff('second', date_trunc('day', b), date_trunc('second', b))) / 2678400.0, 8) END",
    # Decimals, by their digits as whole numbers: halves are rounded away from nothing.
    "lw_rounded(a, b) AS CASE WHEN a IS NULL OR b IS NULL OR b = 0 THEN NULL ELSE "
    "(a // b) + CASE WHEN abs(a % b) * 2 >= abs(b) THEN "
    "CASE WHEN (a < 0) = (b < 0) THEN 1 ELSE -1 END ELSE 0 END END",
    "lw_long(x) AS CASE WHEN isnan(x) THEN 0 ELSE TRY_CAST(x AS BIGINT) END",
    "lw_sign(x) AS CASE WHEN isnan(x) THEN x ELSE sign(x) END",
    "lw_far(x) AS isnan(x) OR isinf(x) OR abs(x) >= 1e15",
    # Lists and maps.
    "lw_collected(a) AS coalesce([x FOR x IN a IF x IS NOT NULL], [])",
    "lw_contains(a, x) AS CASE WHEN a IS NULL OR x IS NULL THEN NULL WHEN list_contains(a, x) "
    "THEN true WHEN len(a) <> list_aggregate(a, 'count') THEN NULL ELSE false END",
    "lw_join(a, x) AS CASE WHEN a IS NULL OR x IS NULL THEN NULL "
    "ELSE coalesce(list_aggregate(a, 'string_agg', x), '') END",
    "lw_at_place(a, n) AS CASE WHEN n >= 0 THEN a[n + 1] END",
    "lw_element(a, n) AS CASE WHEN n <> 0 THEN a[n] END",
    "lw_at_key(m, k) AS map_extract(m, k)[1]",
)
