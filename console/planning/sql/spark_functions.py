"""Functions of Spark 4.2.0 that an older Spark lacks. Written by `python -m tests.matrix.functions`, from Spark's own lists."""

# of versions between two of these nothing is known
_LACKING = {
    "3.5.6": """
        approx_top_k approx_top_k_accumulate approx_top_k_combine approx_top_k_estimate bitmap_and_agg collate
        collation collations current_path current_time dayname from_avro from_protobuf from_xml is_valid_utf8
        is_valid_variant is_variant_null kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
        kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kll_sketch_get_n_bigint
        kll_sketch_get_n_double kll_sketch_get_n_float kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double
        kll_sketch_get_quantile_float kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float
        kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float kll_sketch_to_string_bigint
        kll_sketch_to_string_double kll_sketch_to_string_float listagg make_time make_valid_utf8 measure monthname
        nullifzero parse_json percentile_cont percentile_disc python_worker_logs quote randstr schema_of_avro
        schema_of_variant schema_of_variant_agg schema_of_xml session_user st_asbinary st_geogfromwkb st_geomfromwkb
        st_setsrid st_srid string_agg theta_difference theta_intersection theta_intersection_agg theta_sketch_agg
        theta_sketch_estimate theta_union theta_union_agg time time_bucket time_diff time_from_micros time_from_millis
        time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc to_avro to_protobuf to_time
        to_variant_object to_xml try_make_interval try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz
        try_mod try_parse_json try_parse_url try_reflect try_to_date try_to_time try_url_decode try_validate_utf8
        try_variant_get tuple_difference_double tuple_difference_integer tuple_difference_theta_double
        tuple_difference_theta_integer tuple_intersection_agg_double tuple_intersection_agg_integer
        tuple_intersection_double tuple_intersection_integer tuple_intersection_theta_double
        tuple_intersection_theta_integer tuple_sketch_agg_double tuple_sketch_agg_integer tuple_sketch_estimate_double
        tuple_sketch_estimate_integer tuple_sketch_summary_double tuple_sketch_summary_integer
        tuple_sketch_theta_double tuple_sketch_theta_integer tuple_union_agg_double tuple_union_agg_integer
        tuple_union_double tuple_union_integer tuple_union_theta_double tuple_union_theta_integer uniform validate_utf8
        variant_explode variant_explode_outer variant_get vector_avg vector_cosine_similarity vector_inner_product
        vector_l2_distance vector_norm vector_normalize vector_sum zeroifnull
    """,
    "4.0.1": """
        approx_top_k approx_top_k_accumulate approx_top_k_combine approx_top_k_estimate bitmap_and_agg current_path
        current_time is_valid_variant kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
        kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kll_sketch_get_n_bigint
        kll_sketch_get_n_double kll_sketch_get_n_float kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double
        kll_sketch_get_quantile_float kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float
        kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float kll_sketch_to_string_bigint
        kll_sketch_to_string_double kll_sketch_to_string_float make_time measure python_worker_logs quote st_asbinary
        st_geogfromwkb st_geomfromwkb st_setsrid st_srid theta_difference theta_intersection theta_intersection_agg
        theta_sketch_agg theta_sketch_estimate theta_union theta_union_agg time time_bucket time_diff time_from_micros
        time_from_millis time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc to_time try_to_date
        try_to_time tuple_difference_double tuple_difference_integer tuple_difference_theta_double
        tuple_difference_theta_integer tuple_intersection_agg_double tuple_intersection_agg_integer
        tuple_intersection_double tuple_intersection_integer tuple_intersection_theta_double
        tuple_intersection_theta_integer tuple_sketch_agg_double tuple_sketch_agg_integer tuple_sketch_estimate_double
        tuple_sketch_estimate_integer tuple_sketch_summary_double tuple_sketch_summary_integer
        tuple_sketch_theta_double tuple_sketch_theta_integer tuple_union_agg_double tuple_union_agg_integer
        tuple_union_double tuple_union_integer tuple_union_theta_double tuple_union_theta_integer vector_avg
        vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm vector_normalize vector_sum
    """,
}
LACKING = {version: frozenset(names.split()) for version, names in _LACKING.items()}
