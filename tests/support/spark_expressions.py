"""Expressions and queries whose answers on Spark are kept: golden/make_spark_answers.py."""

import datetime as dt
from decimal import Decimal
from typing import Any

CREATE = (
    "CREATE TABLE t (id STRING, s STRING, n STRING, d DOUBLE, f FLOAT, i INT, l BIGINT, "
    "c DECIMAL(10,2), e DECIMAL(20,6), b BOOLEAN, z BINARY, dt DATE, ts TIMESTAMP, "
    "a ARRAY<INT>, w ARRAY<STRING>, m MAP<STRING,INT>, st STRUCT<x:INT,y:STRING>) "
    "USING hudi TBLPROPERTIES (primaryKey = 'id')"
)


def _at(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)  # type: ignore[misc, arg-type]


_ROWS: list[tuple[Any, ...]] = [
    ("1", "a\\b", "12", 0.0, 1.5, 1, 1, "1.10", "1.000001", True, b"ab", dt.date(2024, 2, 29),
     _at(2024, 3, 10, 7, 30), [1, 2, None], ["x", "y"], {"k": 1}, {"x": 1, "y": "q"}),
    ("2", "50%", "-2.5", float("nan"), -0.25, -7, 9007199254740993, "-0.01", "-2.500000", False,
     b"", dt.date(1969, 12, 31), _at(1969, 12, 31, 23, 59, 59, 999999), [], [], {},
     {"x": None, "y": None}),
    ("3", None, None, None, None, None, None, None, None, None, None, None, None, None, None,
     None, None),
    ("4", "a_b", " 7 ", -2.5, 1e10, 7, -3, "2.50", "0.000000", True, b"\xc3\xa4",
     dt.date(2023, 1, 1), _at(2024, 10, 27, 1, 30, 0, 500000), [3], ["b", None, "a"], {"z": None},
     {"x": 5, "y": ""}),
    ("5", "Äbc d", "x", float("inf"), 0.1, 0, 0, "3.50", "99999999999999.999999", False, b"z",
     dt.date(2024, 12, 30), _at(2100, 1, 1), [None], ["é"], {"k": 9}, {"x": 2, "y": "z"}),
    ("6", "ab  ", "1e3", 12345678.9, -1.5, 2147483647, 5, "0.00", "-0.000001", None, b"a\x00b",
     dt.date(2021, 1, 3), _at(1970, 1, 1), [5, 5, 3], ["q", "q"], {"j": 6, "k": 5},
     {"x": 1, "y": "a"}),
    ("7", "x\nY", "2024-01-05", 0.00012, 3.0, -1, -9223372036854775807, "-99999999.99",
     "12.345678", True, b"\x01", dt.date(2020, 2, 29), _at(2020, 2, 29, 12, 0, 0, 1), [-1, 4],
     [""], {"": 0}, {"x": -1, "y": "Y"}),
]  # fmt: skip

_NAMES = ("id", "s", "n", "d", "f", "i", "l", "c", "e", "b", "z", "dt", "ts", "a", "w", "m", "st")
ROWS: list[dict[str, Any]] = [
    dict(zip(_NAMES, row, strict=True))
    | {"c": row[7] and Decimal(row[7]), "e": row[8] and Decimal(row[8])}
    for row in _ROWS
]

#: Expressions of a row: answered for each of the rows above.
EXPRESSIONS = r"""
CAST(2.7 AS INT)
CAST(-2.5 AS INT)
CAST(2.7D AS INT)
CAST(d AS INT)
CAST(d AS BIGINT)
CAST(f AS INT)
CAST(c AS INT)
CAST(c AS BIGINT)
CAST(e AS BIGINT)
CAST(n AS INT)
CAST(n AS BIGINT)
CAST(n AS DOUBLE)
CAST(n AS DECIMAL(10,2))
CAST(n AS DECIMAL(5,0))
CAST(n AS DATE)
CAST(n AS TIMESTAMP)
CAST(n AS BOOLEAN)
TRY_CAST(n AS INT)
TRY_CAST(d AS INT)
CAST(l AS INT)
CAST(i AS BIGINT)
CAST(i AS DOUBLE)
CAST(i AS FLOAT)
CAST(l AS DOUBLE)
CAST(i AS DECIMAL(12,2))
CAST(i AS DECIMAL(3,0))
CAST(i AS STRING)
CAST(i AS BOOLEAN)
CAST(b AS INT)
CAST(b AS STRING)
CAST(b AS DOUBLE)
CAST(d AS STRING)
CAST(f AS STRING)
CAST(f AS DOUBLE)
CAST(d AS FLOAT)
CAST(c AS STRING)
CAST(e AS STRING)
CAST(c AS DOUBLE)
CAST(c AS DECIMAL(10,1))
CAST(c AS DECIMAL(12,4))
CAST(e AS DECIMAL(10,2))
CAST(d AS DECIMAL(10,2))
CAST(1.005D AS DECIMAL(10,2))
CAST(d AS BOOLEAN)
CAST(dt AS STRING)
CAST(dt AS TIMESTAMP)
CAST(ts AS STRING)
CAST(ts AS DATE)
CAST(ts AS BIGINT)
CAST(ts AS INT)
CAST(ts AS DOUBLE)
CAST(l AS TIMESTAMP)
CAST(i AS TIMESTAMP)
CAST(z AS STRING)
CAST(s AS BINARY)
CAST('2024-01-05' AS DATE)
CAST(' 2024-1-5 ' AS DATE)
CAST('2024' AS DATE)
CAST('2024-03' AS DATE)
CAST('2024-03-10T07:30' AS DATE)
CAST('2024/03/10' AS DATE)
CAST('2024-03-10 07:30:00' AS TIMESTAMP)
CAST('2024-03-10T07:30:00.5Z' AS TIMESTAMP)
CAST('2024-03-10 07:30:00+02:00' AS TIMESTAMP)
CAST('2024-03-10' AS TIMESTAMP)
CAST('2024-03-10 7:3' AS TIMESTAMP)
CAST('NaN' AS DOUBLE)
CAST('-Infinity' AS DOUBLE)
CAST('inf' AS DOUBLE)
CAST('1.5d' AS DOUBLE)
CAST('1_000' AS INT)
CAST('0x10' AS INT)
CAST('+5' AS INT)
CAST('2.7' AS INT)
CAST('1e2' AS INT)
CAST('' AS INT)
CAST('yes' AS BOOLEAN)
CAST('F' AS BOOLEAN)
CAST('on' AS BOOLEAN)
CAST('1.239' AS DECIMAL(10,2))
CAST('1.235' AS DECIMAL(10,2))
CAST('-1.235' AS DECIMAL(10,2))
CAST(1e20 AS BIGINT)
CAST(NULL AS INT)
CAST(1e7 AS STRING)
CAST(1e-3 AS STRING)
CAST(1.5e300 AS STRING)
CAST(-1e-10 AS STRING)
CAST(123456.789D AS STRING)
int('3')
string(i)
double('1.5')
date('2024-01-01')
bigint(i)
boolean('true')
timestamp('2024-01-01 01:02:03')
substr(s, 0, 1)
substr(s, 1, 2)
substr(s, 2)
substr(s, -2)
substr(s, -2, 1)
substr(s, -10, 8)
substr(s, 2, -1)
substr(s, i)
substring(s, 2, 100)
substring(s FROM 2 FOR 1)
substring('Spark', 0)
left(s, 1)
left(s, 0)
left(s, -1)
right(s, 2)
right(s, 0)
right(s, -1)
length(s)
char_length(s)
octet_length(s)
length(z)
bit_length(s)
upper(s)
lower(s)
ucase(s)
initcap('hello wORLD fOo-bar')
trim(s)
ltrim(' x ')
rtrim(s)
trim('\tx\t')
trim(BOTH 'a' FROM s)
trim(LEADING 'a' FROM s)
btrim('  x ')
lpad(s, 3, 'x')
lpad(s, 8, 'xy')
lpad(s, 8)
lpad(s, -1, 'x')
rpad(s, 3, 'x')
rpad(s, 8, 'yz')
rpad(s, 8, '')
concat(s, 'x')
concat(s, n, 'y')
s || 'x'
concat(s, i)
concat_ws('-', s, n)
concat_ws(',', w)
repeat(s, 2)
repeat(s, 0)
reverse(s)
replace(s, 'b', 'q')
replace(s, 'b')
replace(s, '', 'q')
translate(s, 'ab', 'x')
instr(s, 'b')
locate('b', s)
locate('b', s, 3)
position('b' IN s)
position('b', s)
ascii(s)
chr(65)
chr(321)
space(2)
startswith(s, 'a')
endswith(s, 'b')
contains(s, '_')
split(s, '_')
split('a1b2c', '[0-9]')
split('a.b.c', '[.]')
split('a.b.c', '.')
split('a1b2c', '[0-9]')[1]
split_part('a.b.c', '.', 2)
substring_index('a.b.c', '.', 2)
regexp_replace(s, '[ab]', 'z')
regexp_replace('a1b22', '(\\d+)', '<$1>')
regexp_replace('aaa', 'a', '\\$')
regexp_extract('foo12bar34', '([a-z]+)(\\d+)', 2)
regexp_extract('foo12bar34', '([a-z]+)(\\d+)')
regexp_extract('foo', '(x)', 1)
regexp_extract(s, '(b)', 1)
regexp_like(s, 'a.b')
s RLIKE 'a.b'
s RLIKE '^a'
s RLIKE 'x.Y'
s REGEXP '^[A-Z]'
s LIKE '50\\%'
s LIKE 'a\\_b'
s LIKE 'a_b'
s LIKE 'a\\\\b'
s LIKE '%\\%'
s NOT LIKE '%\\%'
s LIKE '%b%'
s NOT LIKE 'a%'
s LIKE 'x_Y'
s LIKE 'a/_b' ESCAPE '/'
s ILIKE 'A\\_B'
s ILIKE 'äb%'
s LIKE ''
md5(s)
sha2(s, 256)
sha1(s)
crc32(CAST(s AS BINARY))
hex(i)
hex(s)
unhex('4142')
base64(z)
unbase64('YWI=')
year(dt)
month(dt)
day(dt)
dayofmonth(dt)
dayofweek(dt)
weekday(dt)
weekofyear(dt)
quarter(dt)
dayofyear(dt)
year(ts)
hour(ts)
minute(ts)
second(ts)
extract(YEAR FROM dt)
extract(DAYOFWEEK FROM dt)
extract(WEEK FROM dt)
extract(QUARTER FROM ts)
extract(HOUR FROM ts)
extract(SECOND FROM ts)
date_part('MONTH', dt)
date_add(dt, 1)
date_add(dt, i)
date_sub(dt, 1)
date_add('2024-01-31', 1)
date_add(ts, 1)
add_months(dt, 1)
add_months(dt, 12)
add_months(dt, -1)
add_months(DATE'2024-01-31', 1)
last_day(dt)
next_day(dt, 'MON')
next_day(dt, 'Sunday')
datediff(dt, DATE'1970-01-01')
datediff(ts, dt)
date_diff(dt, DATE'2024-01-31')
months_between(dt, DATE'2024-01-31')
months_between(ts, DATE'2024-01-31')
dt + 1
dt - 1
dt + INTERVAL 1 MONTH
dt + INTERVAL 2 DAYS
dt - INTERVAL 1 YEAR
dt + INTERVAL '3' DAY
ts + INTERVAL 1 MONTH
ts - INTERVAL 2 HOURS
ts + INTERVAL 90 MINUTES
dt + INTERVAL 1 HOUR
trunc(dt, 'MM')
trunc(dt, 'YEAR')
trunc(dt, 'week')
trunc(dt, 'quarter')
date_trunc('week', ts)
date_trunc('HOUR', ts)
date_trunc('month', ts)
date_trunc('DAY', dt)
date_trunc('second', ts)
date_format(ts, 'yyyy-MM-dd HH:mm:ss')
date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSS')
date_format(dt, 'yyyyMMdd')
date_format(dt, 'EEE, d MMM yy')
date_format(ts, 'EEEE dd MMMM yyyy')
date_format(ts, "yyyy-MM-dd'T'HH:mm:ss")
date_format(ts, 'hh:mm a')
date_format(dt, 'D')
to_date('2024-03-01')
to_date(n)
to_date('01/03/2024', 'dd/MM/yyyy')
to_date('20240301', 'yyyyMMdd')
to_timestamp('2024-01-01 10:00:00')
to_timestamp('01.02.2024 10:11', 'dd.MM.yyyy HH:mm')
unix_timestamp(ts)
unix_timestamp('2024-01-01 00:00:00')
unix_timestamp('01/02/2024', 'dd/MM/yyyy')
to_unix_timestamp(ts)
from_unixtime(0)
from_unixtime(i, 'yyyy')
unix_seconds(ts)
unix_millis(ts)
unix_micros(ts)
unix_date(dt)
timestamp_seconds(i)
timestamp_millis(i)
timestamp_micros(i)
date_from_unix_date(i)
make_date(2024, 2, 29)
from_utc_timestamp(ts, 'America/New_York')
to_utc_timestamp(ts, 'America/New_York')
from_utc_timestamp(ts, 'Asia/Kolkata')
i + 1
i - l
i * 2
l * 2
i / 2
l / i
5 / 2
1 / 3
d / 2
i DIV 2
l DIV 2
i % 3
-7 % 3
d % 2
c % 2
mod(i, 3)
pmod(i, 3)
pmod(-7, 3)
i / 0
i % 0
d / 0
c / 0
-i
-c
-d
+i
abs(i)
abs(c)
abs(d)
c + 1
c + i
c + l
c - c
c * 2
c * c
c * e
c + e
c / 3
c / c
c / i
e / c
e / e
c * 1.1
c * 1.1D
c + d
c / d
f + 1
f * d
f * 2
f + c
i + f
1 + 1.5
1.10 * 1.10
0.1 + 0.2
1e0 + 1
i + '2'
c + '1.5'
round(d)
round(d, 1)
round(f, 1)
round(c)
round(c, 1)
round(e, 2)
round(i)
round(i, -1)
round(2.5)
round(-2.5)
round(1.005D, 2)
round(2.5D)
round(0.5D)
round(-1.5D)
bround(2.5)
floor(d)
ceil(d)
floor(c)
ceil(c)
ceiling(2.1)
floor(-2.1)
floor(i)
ceil(1.5D)
sign(d)
sign(i)
signum(c)
sqrt(4)
sqrt(d)
power(2, 3)
pow(i, 2)
exp(0)
ln(1)
ln(0)
ln(d)
log10(100)
log2(8)
log(2.718281828459045D)
cbrt(27)
degrees(pi())
sin(0)
atan2(1, 1)
greatest(i, 1)
least(i, 1)
greatest(d, 1.0D)
least(s, n)
greatest(NULL, 3)
greatest(c, 2)
least(c, i)
coalesce(s, '-')
coalesce(i, l)
coalesce(c, 0)
coalesce(i, 1.5D)
nvl(i, 0)
nvl2(i, 1, 2)
ifnull(i, 3)
nullif(i, 1)
isnull(i)
isnotnull(i)
isnan(d)
nanvl(d, 1.0D)
if(i > 0, 'p', 'n')
CASE WHEN i > 0 THEN 1 END
CASE WHEN i > 0 THEN 1 ELSE 2.5 END
CASE i WHEN 1 THEN 'one' WHEN 7 THEN 'seven' ELSE s END
CASE WHEN b THEN i ELSE l END
i & 3
i | 8
i ^ 1
~i
shiftleft(i, 1)
shiftright(l, 1)
i > 1
d > 1
d = d
d = CAST('NaN' AS DOUBLE)
d < 1
d = 0
-0.0D = 0.0D
i <=> NULL
s <=> n
i = 7.0
i = '7'
id < 3
c = 2.5
c > 1.1D
dt = '2024-02-29'
dt > ts
ts > '2024-01-01'
ts = '2024-03-10T07:30:00Z'
dt < DATE'2024-01-01'
i BETWEEN 0 AND 7
c NOT BETWEEN 0 AND 2
i IN (1, 7)
i NOT IN (1, NULL)
s IN ('a_b', '50%')
c IN (1.1, 3.5)
i IN ('7')
i IS NULL
b IS TRUE
b IS NOT FALSE
b IS UNKNOWN
i IS DISTINCT FROM 1
i == 1
i != 1
i <> 1
NOT b
!b
b AND i > 0
b OR NULL
b XOR true
'a' = 'a '
'a' < 'B'
s < 'b'
a[0]
a[1]
a[5]
element_at(a, 1)
element_at(a, -1)
element_at(a, 5)
element_at(m, 'k')
try_element_at(a, 5)
get(a, 0)
get(a, 7)
size(a)
size(m)
cardinality(a)
array_size(a)
array_contains(a, 2)
array_contains(a, 3)
array_position(a, 2)
array_join(w, ',')
array_join(w, ',', '-')
sort_array(a)
sort_array(a, false)
array_distinct(a)
array_max(a)
array_min(a)
array(1, 2)
array(i, 7)
CASE WHEN i > 0 THEN array() ELSE w END
slice(a, 1, 2)
concat(a, a)
flatten(array(a, a))
reverse(a)
sequence(1, 3)
array_union(a, a)
array_repeat(1, 2)
array_append(a, 1)
arrays_overlap(a, a)
transform(a, x -> x + 1)
filter(a, x -> x > 1)
exists(a, x -> x > 1)
aggregate(array(1, 2), 0, (x, y) -> x + y)
m['k']
m['nope']
map_keys(m)
map_values(m)
map_contains_key(m, 'k')
map('q', 1)
st.x
st.y
named_struct('p', i, 'q', s)
struct(i, s)
typeof(i)
1
2147483648
100L
1S
1.5
1.5e0
2.5BD
1.5F
-2147483648
0.00
X'1F'
'a\tb'
'\u0041'
r'\d'
NULL
true
DATE'2024-02-29'
TIMESTAMP'2024-03-10 07:30:00'
INTERVAL 1 DAY
width_bucket(5, 0, 10, 5)
bin(5)
conv('ff', 16, 10)
soundex('abc')
levenshtein('kitten', 'sitting')
format_number(1234.5, 2)
format_string('%d-%s', i, s)
overlay('abc' PLACING 'x' FROM 2)
get_json_object('{"a":{"b":1}}', '$.a.b')
hash(i)
xxhash64(s)
current_catalog()
rand(1)
elt(1, 'a', 'b')
find_in_set('b', 'a,b')
factorial(5)
hypot(3, 4)
rint(2.5D)
char(65)
encode('a', 'UTF-8')
decode(z, 'UTF-8')
make_timestamp(2024, 1, 2, 3, 4, 5.5)
dt - DATE'2024-01-01'
ts - ts
zeroifnull(i)
nullifzero(i)
bit_count(i)
equal_null(i, 1)
to_char(i, '999')
""".strip().split("\n")

#: Whole queries; those without ORDER BY are compared as bags.
QUERIES = r"""
SELECT count(*), count(s), count(DISTINCT s), count(DISTINCT s, n) FROM t
SELECT sum(i), sum(l DIV 10), sum(c), sum(e), avg(i), avg(c), avg(e), avg(d) FROM t
SELECT min(d), max(d), min(s), max(dt), min(ts) FROM t
SELECT avg(i), sum(f) FROM t WHERE id IN ('1', '4')
SELECT d, count(*) FROM t GROUP BY d
SELECT b, sum(i) AS n FROM t GROUP BY b ORDER BY b
SELECT b, sum(i) AS n FROM t GROUP BY b HAVING n > 1 ORDER BY n DESC
SELECT b AS k, count(*) FROM t GROUP BY k ORDER BY 2, 1
SELECT b, count(*) FROM t GROUP BY 1 ORDER BY 1 DESC
SELECT b, sum(i) FROM t GROUP BY ALL ORDER BY b
SELECT b, i > 0 AS p, count(*) FROM t GROUP BY b, i > 0 WITH ROLLUP ORDER BY 1, 2, 3
SELECT b, count(*) FROM t GROUP BY GROUPING SETS ((b), ()) ORDER BY 1, 2
SELECT id FROM t ORDER BY i, id
SELECT id FROM t ORDER BY i DESC, id
SELECT id FROM t ORDER BY d, id
SELECT id FROM t ORDER BY d DESC, id
SELECT id FROM t ORDER BY s
SELECT id FROM t ORDER BY dt DESC NULLS FIRST
SELECT id, x FROM t LATERAL VIEW explode(a) v AS x ORDER BY id, x
SELECT id, x FROM t LATERAL VIEW OUTER explode(a) v AS x ORDER BY id, x
SELECT id, p, x FROM t LATERAL VIEW posexplode(a) v AS p, x ORDER BY id, p
SELECT id, p, x FROM t LATERAL VIEW OUTER posexplode(a) v AS p, x ORDER BY id, p
SELECT id, k, v FROM t LATERAL VIEW explode(m) e AS k, v ORDER BY id, k
SELECT id, k, v FROM t LATERAL VIEW OUTER explode(m) e AS k, v ORDER BY id, k
SELECT id, explode(a) AS x FROM t ORDER BY id, x
SELECT id, x, y FROM t LATERAL VIEW explode(a) v AS x LATERAL VIEW explode(w) u AS y ORDER BY 1, 2, 3
SELECT first(s), last(s) FROM (SELECT * FROM t ORDER BY id)
SELECT max_by(id, i), min_by(id, i) FROM t
SELECT id, row_number() OVER (ORDER BY i) AS n, rank() OVER (ORDER BY b) AS r, dense_rank() OVER (ORDER BY b) AS e FROM t ORDER BY id
SELECT id, lag(i) OVER (ORDER BY id) AS a, lead(i, 2, -1) OVER (ORDER BY id) AS b, ntile(2) OVER (ORDER BY id) AS n FROM t ORDER BY id
SELECT id, sum(i) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM t ORDER BY id
SELECT id, sum(c) OVER (PARTITION BY b ORDER BY id) AS n, count(*) OVER () AS k FROM t ORDER BY id
SELECT id, first_value(i) OVER (ORDER BY id) AS n, last_value(i) OVER (ORDER BY id) AS k FROM t ORDER BY id
SELECT id, percent_rank() OVER (ORDER BY id) AS p, cume_dist() OVER (ORDER BY id) AS q FROM t ORDER BY id
SELECT id, avg(c) OVER (ORDER BY id) AS p FROM t ORDER BY id
SELECT id FROM t QUALIFY row_number() OVER (ORDER BY id) = 1
SELECT stddev(i), variance(l), stddev_pop(i), var_pop(i) FROM t WHERE id IN ('1', '4')
SELECT stddev(i), var_samp(i) FROM t WHERE id = '1'
SELECT percentile(i, 0.5), median(i) FROM t
SELECT count_if(i > 0), bool_and(b), bool_or(b), every(b), any(b) FROM t
SELECT sum(i) FILTER (WHERE i > 0), count(*) FILTER (WHERE b) FROM t
SELECT collect_list(i) FROM (SELECT i FROM t ORDER BY id)
SELECT sort_array(collect_set(i)) FROM t
SELECT array_sort(collect_list(DISTINCT b)) FROM t
SELECT string_agg(id, ',') FROM t WHERE id = '1'
SELECT any_value(1), sum(DISTINCT i), approx_count_distinct(id) FROM t
SELECT id FROM t LEFT SEMI JOIN (SELECT 1 AS i) u ON t.i = u.i
SELECT id FROM t LEFT ANTI JOIN (SELECT 1 AS i) u ON t.i = u.i ORDER BY id
SELECT t.id, u.id FROM t JOIN t u ON t.i <=> u.i ORDER BY 1, 2
SELECT i, t.id, u.id FROM t JOIN t u USING (i) ORDER BY 1, 2
SELECT t.id, u.id FROM t FULL OUTER JOIN (SELECT '9' AS id) u ON t.id = u.id ORDER BY 1, 2
SELECT t.id, u.id FROM t LEFT JOIN t u ON t.i = u.l ORDER BY 1, 2
SELECT id FROM t CROSS JOIN (SELECT 1 AS one) u ORDER BY id
SELECT * FROM (SELECT id, i FROM t) NATURAL JOIN (SELECT id, l FROM t) ORDER BY id
SELECT id FROM t EXCEPT SELECT '1' ORDER BY id
SELECT id FROM t MINUS SELECT '1' ORDER BY id
SELECT b FROM t INTERSECT SELECT true
SELECT i FROM t UNION ALL SELECT l FROM t
SELECT c FROM t UNION SELECT i FROM t
SELECT i FROM t UNION ALL SELECT s FROM t
SELECT i, c / 3 AS q FROM t WHERE id = '1' UNION ALL SELECT 1, 2
SELECT id FROM t WHERE i NOT IN (SELECT i FROM t WHERE i > 1)
SELECT id FROM t WHERE i IN (SELECT CAST(l AS INT) FROM t WHERE l BETWEEN 0 AND 10) ORDER BY id
SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM t u WHERE u.l = t.i) ORDER BY id
SELECT id, (SELECT max(i) FROM t) AS x FROM t ORDER BY id
SELECT id, (SELECT max(u.i) FROM t u WHERE u.b = t.b) AS x FROM t ORDER BY id
WITH u AS (SELECT id, CAST(d * 2 AS STRING) AS x FROM t), v AS (SELECT * FROM u) SELECT id, x, upper(x) AS y FROM v ORDER BY id
SELECT x / 3 AS y FROM (SELECT c * 2 AS x FROM t WHERE id = '1') q
SELECT i FROM VALUES (1), (2) AS v(i) ORDER BY i
SELECT x + 1 AS y, z FROM (VALUES (1.5, 'a'), (22.75, 'b')) AS v(x, z) ORDER BY y
SELECT * EXCEPT (a, w, m, st, z, d, f) FROM t ORDER BY id
SELECT `ID` FROM t ORDER BY `id`
SELECT id, i + 1 AS j, j * 2 AS k FROM t WHERE id < '5' ORDER BY id
SELECT DISTINCT b FROM t ORDER BY b
SELECT id FROM t ORDER BY id LIMIT 2 OFFSET 1
SELECT id FROM t LIMIT 0
SELECT * FROM (SELECT id, i FROM t) PIVOT (sum(i) FOR id IN ('1' AS one, '2' AS two))
SELECT CAST(2.7 AS INT), substr('xyz', 0, 1)
SELECT sum(CAST(d AS INT)) FROM t WHERE id IN ('1', '4')
SELECT b, CASE WHEN sum(c) > 1 THEN round(avg(c), 1) END AS x FROM t GROUP BY b ORDER BY b
SELECT date_add(dt, 1) AS x, count(*) AS n FROM t GROUP BY date_add(dt, 1) ORDER BY x
SELECT b, corr(i, l) FROM t GROUP BY b ORDER BY b
SELECT id FROM t WHERE s LIKE '%\\%' ORDER BY id
SELECT id FROM t WHERE dayofweek(dt) = 1 ORDER BY id
SELECT * FROM t TABLESAMPLE (100 PERCENT) ORDER BY id LIMIT 0
SELECT max(struct(i, id)) FROM t
SELECT grouping(b), b FROM t GROUP BY b WITH CUBE ORDER BY 1, 2
SELECT id FROM t WHERE i = ANY (SELECT 1)
SELECT id FROM t DISTRIBUTE BY id SORT BY id
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r ORDER BY n
""".strip().split("\n")  # noqa: E501

#: What is refused without Spark.
NEEDS_SPARK = frozenset(
    r"""
bit_length(s)
initcap('hello wORLD fOo-bar')
concat_ws(',', w)
reverse(s)
translate(s, 'ab', 'x')
ascii(s)
chr(65)
chr(321)
space(2)
split_part('a.b.c', '.', 2)
substring_index('a.b.c', '.', 2)
crc32(CAST(s AS BINARY))
hex(i)
hex(s)
unhex('4142')
base64(z)
unbase64('YWI=')
make_date(2024, 2, 29)
bround(2.5)
cbrt(27)
degrees(pi())
sin(0)
atan2(1, 1)
i ^ 1
~i
shiftleft(i, 1)
shiftright(l, 1)
array_position(a, 2)
array_join(w, ',', '-')
sort_array(a, false)
array_distinct(a)
slice(a, 1, 2)
flatten(array(a, a))
reverse(a)
sequence(1, 3)
array_union(a, a)
array_repeat(1, 2)
array_append(a, 1)
arrays_overlap(a, a)
transform(a, x -> x + 1)
filter(a, x -> x > 1)
exists(a, x -> x > 1)
aggregate(array(1, 2), 0, (x, y) -> x + y)
map_contains_key(m, 'k')
map('q', 1)
struct(i, s)
typeof(i)
1S
INTERVAL 1 DAY
width_bucket(5, 0, 10, 5)
bin(5)
conv('ff', 16, 10)
soundex('abc')
levenshtein('kitten', 'sitting')
format_number(1234.5, 2)
format_string('%d-%s', i, s)
overlay('abc' PLACING 'x' FROM 2)
get_json_object('{"a":{"b":1}}', '$.a.b')
hash(i)
xxhash64(s)
current_catalog()
rand(1)
elt(1, 'a', 'b')
find_in_set('b', 'a,b')
factorial(5)
hypot(3, 4)
rint(2.5D)
char(65)
encode('a', 'UTF-8')
decode(z, 'UTF-8')
make_timestamp(2024, 1, 2, 3, 4, 5.5)
dt - DATE'2024-01-01'
ts - ts
zeroifnull(i)
nullifzero(i)
bit_count(i)
equal_null(i, 1)
to_char(i, '999')
SELECT b, i > 0 AS p, count(*) FROM t GROUP BY b, i > 0 WITH ROLLUP ORDER BY 1, 2, 3
SELECT array_sort(collect_list(DISTINCT b)) FROM t
SELECT string_agg(id, ',') FROM t WHERE id = '1'
SELECT any_value(1), sum(DISTINCT i), approx_count_distinct(id) FROM t
SELECT i FROM t UNION ALL SELECT s FROM t
SELECT * FROM (SELECT id, i FROM t) PIVOT (sum(i) FOR id IN ('1' AS one, '2' AS two))
SELECT b, corr(i, l) FROM t GROUP BY b ORDER BY b
SELECT max(struct(i, id)) FROM t
SELECT grouping(b), b FROM t GROUP BY b WITH CUBE ORDER BY 1, 2
SELECT id FROM t WHERE i = ANY (SELECT 1)
SELECT id FROM t DISTRIBUTE BY id SORT BY id
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r ORDER BY n
""".strip().split("\n")  # noqa: E501
)

#: What fails, though only read, where a number or a date is too great.
OVERFLOWS = frozenset(
    {
        "CAST(l AS TIMESTAMP)",
        "date_add(dt, i)",
        "date_from_unix_date(i)",
        "i + 1",
        "i * 2",
        "l * 2",
        "round(i, -1)",
    }
)
