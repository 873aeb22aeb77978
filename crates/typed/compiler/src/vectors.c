/* Operators on vectors: a part of the prelude for programs that have one. */
typedef u8 u8x16 __attribute__((vector_size(16)));
typedef s8 s8x16 __attribute__((vector_size(16)));
typedef u16 u16x8 __attribute__((vector_size(16)));
typedef s16 s16x8 __attribute__((vector_size(16)));
typedef u32 u32x4 __attribute__((vector_size(16)));
typedef s32 s32x4 __attribute__((vector_size(16)));
typedef u64 u64x2 __attribute__((vector_size(16)));
typedef s64 s64x2 __attribute__((vector_size(16)));

/* Lanes of two vectors by their numbers. */
#ifdef __clang__
#define LANES(type, a, b, ...) ((v128)__builtin_shufflevector((type)(a), (type)(b), __VA_ARGS__))
#else
#define LANES(type, a, b, ...) ((v128)__builtin_shuffle((type)(a), (type)(b), (type){__VA_ARGS__}))
#endif
#define i8x16_shuffle(a, b, ...) LANES(u8x16, a, b, __VA_ARGS__)

/*
 * Operators by expressions of C on vectors x and y of one type. What C leaves open or does not have is an instruction:
 * the C compiler would compute some of them from constants by rules of its own.
 */
#define MAP(name, type, value) \
	INLINE v128 name(v128 a) { type x = (type)a; return (v128)(value); }
#define ZIP(name, type, value) \
	INLINE v128 name(v128 a, v128 b) { type x = (type)a, y = (type)b; return (v128)(value); }
#define UNARY(name, instruction) \
	INLINE v128 name(v128 a) \
	{ \
		v128 result; \
		__asm__(instruction " %1, %0" : "=x"(result) : "x"(a)); \
		return result; \
	}
#define BINARY(name, instruction) \
	INLINE v128 name(v128 a, v128 b) { __asm__(instruction " %1, %0" : "+x"(a) : "x"(b)); return a; }
#define BITS(name, instruction) \
	INLINE u32 name(v128 a) { u32 bits; __asm__(instruction " %1, %0" : "=r"(bits) : "x"(a)); return bits; }

MAP(v128_not, u64x2, ~x)
ZIP(v128_and, u64x2, x & y)
ZIP(v128_andnot, u64x2, x & ~y)
ZIP(v128_or, u64x2, x | y)
ZIP(v128_xor, u64x2, x ^ y)
INLINE v128 v128_bitselect(v128 a, v128 b, v128 c) { return (a & c) | (b & ~c); }
INLINE u32 v128_any_true(v128 a)
{
	u32 some;

	__asm__("ptest %1, %1" : "=@ccnz"(some) : "x"(a));
	return some;
}

/*
 * Lanes of all types. Their numbers are constants. pinsrb, pinsrw and movd read 32 bits of a register, of which the C
 * compiler would load only those that count; the checker wants all of them to be data.
 */
#define LANE(name, result, type, lane_type) \
	INLINE result name(v128 a, u32 lane) { return (result)(lane_type)((type)a)[lane]; }
#define REPLACE(v, type, argument, keep) \
	INLINE v128 v##_replace_lane(v128 a, argument value, u32 lane) \
	{ \
		type x = (type)a; \
		keep; \
		x[lane] = value; \
		return (v128)x; \
	}
LANE(i8x16_extract_lane_s, u32, u8x16, s8)
LANE(i8x16_extract_lane_u, u32, u8x16, u8)
LANE(i16x8_extract_lane_s, u32, u16x8, s16)
LANE(i16x8_extract_lane_u, u32, u16x8, u16)
LANE(i32x4_extract_lane, u32, u32x4, u32)
LANE(i64x2_extract_lane, u64, u64x2, u64)
LANE(f32x4_extract_lane, f32, f32x4, f32)
LANE(f64x2_extract_lane, f64, f64x2, f64)
REPLACE(i8x16, u8x16, u32, KEEP(value))
REPLACE(i16x8, u16x8, u32, KEEP(value))
REPLACE(i32x4, u32x4, u32, )
REPLACE(i64x2, u64x2, u64, )
REPLACE(f32x4, f32x4, f32, )
REPLACE(f64x2, f64x2, f64, )
INLINE v128 i32x4_splat(u32 a) { return (v128)(u32x4){a, a, a, a}; }
INLINE v128 i16x8_splat(u32 a) { return i32x4_splat((a & 0xffff) * 0x10001); }
INLINE v128 i8x16_splat(u32 a) { return i32x4_splat((a & 0xff) * 0x1010101); }
INLINE v128 i64x2_splat(u64 a) { return (v128)(u64x2){a, a}; }
INLINE v128 f32x4_splat(f32 a) { return (v128)(f32x4){a, a, a, a}; }
INLINE v128 f64x2_splat(f64 a) { return (v128)(f64x2){a, a}; }

/* Integers: the operators' prefix, types of vectors without and with a sign, type and bits of a lane. */
#define INTEGERS(v, u, s, lane, bits) \
	ZIP(v##_eq, u, x == y) \
	ZIP(v##_ne, u, x != y) \
	ZIP(v##_lt_s, s, x < y) \
	ZIP(v##_gt_s, s, x > y) \
	ZIP(v##_le_s, s, x <= y) \
	ZIP(v##_ge_s, s, x >= y) \
	ZIP(v##_add, u, x + y) \
	ZIP(v##_sub, u, x - y) \
	MAP(v##_neg, u, -x) \
	INLINE u32 v##_all_true(v128 a) { return !v128_any_true((v128)((u)a == (u){0})); } \
	INLINE v128 v##_shl(v128 a, u32 count) { return (v128)((u)a << (lane)(count & (bits - 1))); } \
	INLINE v128 v##_shr_u(v128 a, u32 count) { return (v128)((u)a >> (lane)(count & (bits - 1))); }
#define UNSIGNED(v, u) \
	ZIP(v##_lt_u, u, x < y) \
	ZIP(v##_gt_u, u, x > y) \
	ZIP(v##_le_u, u, x <= y) \
	ZIP(v##_ge_u, u, x >= y)
#define SHIFT_SIGN(v, s, lane, bits) \
	INLINE v128 v##_shr_s(v128 a, u32 count) { return (v128)((s)a >> (lane)(count & (bits - 1))); }
INTEGERS(i8x16, u8x16, s8x16, u8, 8)
INTEGERS(i16x8, u16x8, s16x8, u16, 16)
INTEGERS(i32x4, u32x4, s32x4, u32, 32)
INTEGERS(i64x2, u64x2, s64x2, u64, 64)
UNSIGNED(i8x16, u8x16)
UNSIGNED(i16x8, u16x8)
UNSIGNED(i32x4, u32x4)
SHIFT_SIGN(i8x16, s8x16, s8, 8)
SHIFT_SIGN(i16x8, s16x8, s16, 16)
SHIFT_SIGN(i32x4, s32x4, s32, 32)
ZIP(i16x8_mul, u16x8, x * y)
ZIP(i32x4_mul, u32x4, x * y)
ZIP(i64x2_mul, u64x2, x * y)

/* SSE has no such shift: a number without its sign, whose highest bit's value is taken off. */
INLINE v128 i64x2_shr_s(v128 a, u32 count)
{
	u64x2 sign = (u64x2){1ull << 63, 1ull << 63} >> (u64)(count & 63);

	return (v128)((((u64x2)a >> (u64)(count & 63)) ^ sign) - sign);
}

UNARY(i8x16_abs, "pabsb")
UNARY(i16x8_abs, "pabsw")
UNARY(i32x4_abs, "pabsd")
MAP(i64x2_abs, s64x2, (x ^ (x < (s64x2){0})) - (x < (s64x2){0}))
BINARY(i8x16_min_s, "pminsb")
BINARY(i8x16_min_u, "pminub")
BINARY(i8x16_max_s, "pmaxsb")
BINARY(i8x16_max_u, "pmaxub")
BINARY(i16x8_min_s, "pminsw")
BINARY(i16x8_min_u, "pminuw")
BINARY(i16x8_max_s, "pmaxsw")
BINARY(i16x8_max_u, "pmaxuw")
BINARY(i32x4_min_s, "pminsd")
BINARY(i32x4_min_u, "pminud")
BINARY(i32x4_max_s, "pmaxsd")
BINARY(i32x4_max_u, "pmaxud")
BINARY(i8x16_add_sat_s, "paddsb")
BINARY(i8x16_add_sat_u, "paddusb")
BINARY(i8x16_sub_sat_s, "psubsb")
BINARY(i8x16_sub_sat_u, "psubusb")
BINARY(i16x8_add_sat_s, "paddsw")
BINARY(i16x8_add_sat_u, "paddusw")
BINARY(i16x8_sub_sat_s, "psubsw")
BINARY(i16x8_sub_sat_u, "psubusw")
BINARY(i8x16_avgr_u, "pavgb")
BINARY(i16x8_avgr_u, "pavgw")
BINARY(i8x16_narrow_i16x8_s, "packsswb")
BINARY(i8x16_narrow_i16x8_u, "packuswb")
BINARY(i16x8_narrow_i32x4_s, "packssdw")
BINARY(i16x8_narrow_i32x4_u, "packusdw")
BINARY(i32x4_dot_i16x8_s, "pmaddwd")
BITS(i8x16_bitmask, "pmovmskb")
BITS(i32x4_bitmask, "movmskps")
BITS(i64x2_bitmask, "movmskpd")
INLINE u32 i16x8_bitmask(v128 a) { return i8x16_bitmask(i8x16_narrow_i16x8_s(a, (v128){0})); }

/* pshufb gives 0 for an index whose highest bit is set: what is at least 16 gets it. */
BINARY(shuffle_bytes, "pshufb")
INLINE v128 i8x16_swizzle(v128 a, v128 b)
{
	return shuffle_bytes(a, i8x16_add_sat_u(b, i8x16_splat(0x70)));
}

INLINE v128 i8x16_popcnt(v128 a)
{
	v128 of_four = (v128)(u8x16){0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
	v128 four = i8x16_splat(15), high = i16x8_shr_u(a, 4) & four;

	return i8x16_add(shuffle_bytes(of_four, a & four), shuffle_bytes(of_four, high));
}

/* pmulhrsw overflows for one pair only, that of the two lowest numbers. */
BINARY(multiply_rounded, "pmulhrsw")
INLINE v128 i16x8_q15mulr_sat_s(v128 a, v128 b)
{
	v128 product = multiply_rounded(a, b);

	return product ^ i16x8_eq(product, i16x8_splat(0x8000));
}

/* From lanes of half the width. */
#define EXTEND(wide, narrow, sign, instruction) \
	UNARY(wide##_extend_low_##narrow##_##sign, instruction) \
	INLINE v128 wide##_extend_high_##narrow##_##sign(v128 a) \
	{ \
		return wide##_extend_low_##narrow##_##sign(LANES(u64x2, a, a, 1, 1)); \
	}
EXTEND(i16x8, i8x16, s, "pmovsxbw")
EXTEND(i16x8, i8x16, u, "pmovzxbw")
EXTEND(i32x4, i16x8, s, "pmovsxwd")
EXTEND(i32x4, i16x8, u, "pmovzxwd")
EXTEND(i64x2, i32x4, s, "pmovsxdq")
EXTEND(i64x2, i32x4, u, "pmovzxdq")

BINARY(multiply_high_s, "pmulhw")
BINARY(multiply_high_u, "pmulhuw")
BINARY(multiply_even_s, "pmuldq")
BINARY(multiply_even_u, "pmuludq")
#define MULTIPLY(half, sign, of_words, of_doubles) \
	INLINE v128 i16x8_extmul_##half##_i8x16_##sign(v128 a, v128 b) \
	{ \
		return i16x8_mul(i16x8_extend_##half##_i8x16_##sign(a), i16x8_extend_##half##_i8x16_##sign(b)); \
	} \
	INLINE v128 i32x4_extmul_##half##_i16x8_##sign(v128 a, v128 b) \
	{ \
		return LANES(u16x8, i16x8_mul(a, b), multiply_high_##sign(a, b), of_words); \
	} \
	INLINE v128 i64x2_extmul_##half##_i32x4_##sign(v128 a, v128 b) \
	{ \
		return multiply_even_##sign(LANES(u32x4, a, a, of_doubles), LANES(u32x4, b, b, of_doubles)); \
	}
#define LOW_WORDS 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_WORDS 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_DOUBLES 0, 0, 1, 1
#define HIGH_DOUBLES 2, 2, 3, 3
MULTIPLY(low, s, LOW_WORDS, LOW_DOUBLES)
MULTIPLY(low, u, LOW_WORDS, LOW_DOUBLES)
MULTIPLY(high, s, HIGH_WORDS, HIGH_DOUBLES)
MULTIPLY(high, u, HIGH_WORDS, HIGH_DOUBLES)

/* Of unsigned numbers with signed ones. */
BINARY(multiply_add_bytes, "pmaddubsw")
INLINE v128 i16x8_extadd_pairwise_i8x16_s(v128 a) { return multiply_add_bytes(i8x16_splat(1), a); }
INLINE v128 i16x8_extadd_pairwise_i8x16_u(v128 a) { return multiply_add_bytes(a, i8x16_splat(1)); }
INLINE v128 i32x4_extadd_pairwise_i16x8_s(v128 a) { return i32x4_dot_i16x8_s(a, i16x8_splat(1)); }
MAP(i32x4_extadd_pairwise_i16x8_u, u32x4, (x & 0xffff) + (x >> 16))

/* Numbers with a point. A result that is NaN has no bits of its operands: `rest` is the width of sign and exponent. */
#define FLOATS(f, v, i, sign, rest, suffix) \
	ZIP(f##_eq, v, x == y) \
	ZIP(f##_ne, v, x != y) \
	ZIP(f##_lt, v, x < y) \
	ZIP(f##_gt, v, x > y) \
	ZIP(f##_le, v, x <= y) \
	ZIP(f##_ge, v, x >= y) \
	ZIP(f##_add, v, x + y) \
	ZIP(f##_sub, v, x - y) \
	ZIP(f##_mul, v, x * y) \
	ZIP(f##_div, v, x / y) \
	MAP(f##_abs, i, x & ~sign) \
	MAP(f##_neg, i, x ^ sign) \
	UNARY(f##_sqrt, "sqrt" suffix) \
	UNARY(f##_ceil, "round" suffix " $10,") \
	UNARY(f##_floor, "round" suffix " $9,") \
	UNARY(f##_trunc, "round" suffix " $11,") \
	UNARY(f##_nearest, "round" suffix " $8,") \
	/* The second operand if one of them is NaN, or if they are zeros. */ \
	BINARY(f##_less, "min" suffix) \
	BINARY(f##_more, "max" suffix) \
	BINARY(f##_unordered, "cmpunord" suffix) \
	INLINE v128 f##_pmin(v128 a, v128 b) { return f##_less(b, a); } \
	INLINE v128 f##_pmax(v128 a, v128 b) { return f##_more(b, a); } \
	INLINE v128 f##_or_nan(v128 result, v128 is_nan) \
	{ \
		return (result | is_nan) & ~(v128)((i)is_nan >> (rest + 1)); \
	} \
	INLINE v128 f##_min(v128 a, v128 b) \
	{ \
		return f##_or_nan(f##_less(a, b) | f##_less(b, a), f##_unordered(a, b)); \
	} \
	INLINE v128 f##_max(v128 a, v128 b) \
	{ \
		return f##_or_nan(f##_more(a, b) & f##_more(b, a), f##_unordered(a, b)); \
	}
FLOATS(f32x4, f32x4, u32x4, 0x80000000u, 9, "ps")
FLOATS(f64x2, f64x2, u64x2, 0x8000000000000000ull, 12, "pd")

MAP(f32x4_convert_i32x4_s, s32x4, __builtin_convertvector(x, f32x4))
MAP(f32x4_convert_i32x4_u, u32x4, __builtin_convertvector(x, f32x4))
UNARY(f64x2_convert_low_i32x4_s, "cvtdq2pd")
UNARY(f32x4_demote_f64x2_zero, "cvtpd2ps")
UNARY(f64x2_promote_low_f32x4, "cvtps2pd")
/* As the lowest bits of 2^52 plus the number. */
INLINE v128 f64x2_convert_low_i32x4_u(v128 a)
{
	return (v128)((f64x2)(i64x2_extend_low_i32x4_u(a) | i64x2_splat(0x433ull << 52)) - 0x1p52);
}

/* To integers: these give the lowest number for what has no result. */
UNARY(truncate_f32, "cvttps2dq")
UNARY(truncate_f64, "cvttpd2dq")
INLINE v128 i32x4_trunc_sat_f32x4_s(v128 a)
{
	v128 number = a & f32x4_eq(a, a);

	return truncate_f32(number) ^ f32x4_ge(number, f32x4_splat(0x1p31f));
}

INLINE v128 i32x4_trunc_sat_f32x4_u(v128 a)
{
	v128 half = f32x4_splat(0x1p31f), number = f32x4_more(a, (v128){0});
	v128 above = f32x4_sub(number, half), rest = truncate_f32(above) ^ f32x4_ge(above, half);

	return i32x4_add(truncate_f32(number), i32x4_max_s(rest, (v128){0}));
}

INLINE v128 i32x4_trunc_sat_f64x2_s_zero(v128 a)
{
	return truncate_f64(f64x2_less(a, f64x2_eq(a, a) & f64x2_splat(0x1p31 - 1)));
}

INLINE v128 i32x4_trunc_sat_f64x2_u_zero(v128 a)
{
	v128 number = f64x2_less(f64x2_more(a, (v128){0}), f64x2_splat(0x1p32 - 1));

	return LANES(u32x4, f64x2_add(f64x2_trunc(number), f64x2_splat(0x1p52)), (v128){0}, 0, 2, 4, 5);
}

/* Loads and stores. */
LOAD(v128_load, v128, v128m)
STORE(v128_store, v128, v128m)
#define LOAD_VECTOR(name, type, value) \
	INLINE v128 name(u64 base, u64 index) { type x = AT(type, base, index); return value; }
LOAD_VECTOR(v128_load8x8_s, u64m, i16x8_extend_low_i8x16_s((v128){x}))
LOAD_VECTOR(v128_load8x8_u, u64m, i16x8_extend_low_i8x16_u((v128){x}))
LOAD_VECTOR(v128_load16x4_s, u64m, i32x4_extend_low_i16x8_s((v128){x}))
LOAD_VECTOR(v128_load16x4_u, u64m, i32x4_extend_low_i16x8_u((v128){x}))
LOAD_VECTOR(v128_load32x2_s, u64m, i64x2_extend_low_i32x4_s((v128){x}))
LOAD_VECTOR(v128_load32x2_u, u64m, i64x2_extend_low_i32x4_u((v128){x}))
LOAD_VECTOR(v128_load8_splat, u8, i8x16_splat(x))
LOAD_VECTOR(v128_load16_splat, u16m, i16x8_splat(x))
LOAD_VECTOR(v128_load32_splat, f32m, f32x4_splat(x))
LOAD_VECTOR(v128_load64_splat, f64m, f64x2_splat(x))
LOAD_VECTOR(v128_load32_zero, u32m, (v128)(u32x4){x})
LOAD_VECTOR(v128_load64_zero, u64m, (v128){x})
#define MEMORY_LANE(bits, v, type, extract) \
	INLINE v128 v128_load##bits##_lane(u64 base, u64 index, v128 a, u32 lane) \
	{ \
		return v##_replace_lane(a, AT(type, base, index), lane); \
	} \
	INLINE void v128_store##bits##_lane(u64 base, u64 index, v128 a, u32 lane) \
	{ \
		AT(type, base, index) = v##_##extract(a, lane); \
	}
MEMORY_LANE(8, i8x16, u8, extract_lane_u)
MEMORY_LANE(16, i16x8, u16m, extract_lane_u)
MEMORY_LANE(32, i32x4, u32m, extract_lane)
MEMORY_LANE(64, f64x2, f64m, extract_lane)
