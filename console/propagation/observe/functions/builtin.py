"""Functions that change no table: PostgreSQL's own that read or compute, and those of common extensions.

source  pg_proc of PostgreSQL 15; uuid-ossp, pgcrypto, unaccent, pg_trgm
"""

from typing import Final

_NAMES: Final = """
    abbrev abs aclcontains acldefault aclexplode aclinsert aclremove acos acosd acosh age amvalidate area array_agg
    array_append array_cat array_dims array_fill array_length array_lower array_ndims array_position array_positions
    array_prepend array_remove array_replace array_to_json array_to_string array_to_tsvector array_upper ascii asin
    asind asinh atan atan2 atan2d atand atanh avg bit_and bit_count bit_length bit_or bit_xor bitcmp bool bool_and
    bool_or bound_box box bpchar broadcast btrim byteacmp cardinality cbrt ceil ceiling center char_length
    character_length chr circle clock_timestamp col_description concat concat_ws convert convert_from convert_to
    corr cos cosd cosh cot cotd count covar_pop covar_samp crypt cume_dist current_database current_query
    current_schema current_schemas current_setting current_user currtid2 currval date date_bin date_part date_trunc
    datemultirange daterange daterange_canonical daterange_subdiff decode degrees dense_rank dexp diagonal diameter
    digest div dlog1 dlog10 dround dtrunc encode enum_first enum_last enum_range every exp factorial family
    first_value float4 float4larger float4smaller float8 float8larger float8smaller floor format format_type gcd
    gen_random_bytes gen_random_uuid gen_salt generate_series generate_subscripts get_bit get_byte
    get_current_ts_config getdatabaseencoding has_any_column_privilege has_column_privilege has_database_privilege
    has_foreign_data_wrapper_privilege has_function_privilege has_language_privilege has_parameter_privilege
    has_schema_privilege has_sequence_privilege has_server_privilege has_table_privilege has_tablespace_privilege
    has_type_privilege hashbpchar hashbpcharextended hashchar hashcharextended hashenum hashenumextended hashfloat4
    hashfloat4extended hashfloat8 hashfloat8extended hashmacaddr hashmacaddr8 hashmacaddr8extended
    hashmacaddrextended hashname hashnameextended hashoid hashoidextended hashoidvector hashoidvectorextended
    hashtext hashtextextended hashtid hashtidextended height hmac host hostmask initcap int2 int2int4_sum int2larger
    int2smaller int4 int4inc int4larger int4multirange int4range int4range_canonical int4range_subdiff int4smaller
    int8 int8dec int8dec_any int8inc int8inc_any int8inc_float8_float8 int8larger int8multirange int8range
    int8range_canonical int8range_subdiff int8smaller is_normalized isclosed isempty isfinite ishorizontal isopen
    isparallel isperp isvertical json_agg json_array_elements json_array_elements_text json_array_length
    json_build_array json_build_object json_each json_each_text json_extract_path json_extract_path_text json_object
    json_object_agg json_object_keys json_populate_record json_populate_recordset json_strip_nulls json_to_record
    json_to_recordset json_to_tsvector json_typeof jsonb_agg jsonb_array_elements jsonb_array_elements_text
    jsonb_array_length jsonb_build_array jsonb_build_object jsonb_concat jsonb_delete jsonb_each jsonb_each_text
    jsonb_extract_path jsonb_extract_path_text jsonb_insert jsonb_object jsonb_object_agg jsonb_object_keys
    jsonb_path_exists jsonb_path_exists_tz jsonb_path_match jsonb_path_match_tz jsonb_path_query
    jsonb_path_query_array jsonb_path_query_array_tz jsonb_path_query_first jsonb_path_query_first_tz
    jsonb_path_query_tz jsonb_populate_record jsonb_populate_recordset jsonb_pretty jsonb_set jsonb_set_lax
    jsonb_strip_nulls jsonb_to_record jsonb_to_recordset jsonb_to_tsvector jsonb_typeof justify_days justify_hours
    justify_interval lag last_value lastval lcm lead left length like_escape line ln log log10 lower lower_inc
    lower_inf lpad lseg ltrim make_date make_interval make_time make_timestamp make_timestamptz makeaclitem masklen
    max md5 min min_scale mod mode money multirange mxid_age name nameconcatoid netmask network nextval notlike now
    npoints nth_value ntile num_nonnulls num_nulls nummultirange numnode numrange numrange_subdiff obj_description
    octet_length oid overlaps parse_ident path pclose percent_rank percentile_cont percentile_disc pg_advisory_lock
    pg_advisory_lock_shared pg_advisory_unlock pg_advisory_unlock_all pg_advisory_unlock_shared
    pg_advisory_xact_lock pg_advisory_xact_lock_shared pg_available_extension_versions pg_available_extensions
    pg_backend_pid pg_blocking_pids pg_char_to_encoding pg_client_encoding pg_collation_actual_version
    pg_collation_for pg_collation_is_visible pg_column_compression pg_column_is_updatable pg_column_size
    pg_conf_load_time pg_config pg_conversion_is_visible pg_current_logfile pg_current_snapshot
    pg_current_wal_flush_lsn pg_current_wal_insert_lsn pg_current_wal_lsn pg_current_xact_id
    pg_current_xact_id_if_assigned pg_cursor pg_database_collation_actual_version pg_database_size
    pg_describe_object pg_encoding_max_length pg_encoding_to_char pg_export_snapshot pg_extension_config_dump
    pg_extension_update_paths pg_function_is_visible pg_get_backend_memory_contexts pg_get_catalog_foreign_keys
    pg_get_constraintdef pg_get_expr pg_get_function_arg_default pg_get_function_arguments
    pg_get_function_identity_arguments pg_get_function_result pg_get_function_sqlbody pg_get_functiondef
    pg_get_indexdef pg_get_keywords pg_get_multixact_members pg_get_object_address pg_get_partition_constraintdef
    pg_get_partkeydef pg_get_publication_tables pg_get_replica_identity_index pg_get_replication_slots
    pg_get_ruledef pg_get_serial_sequence pg_get_shmem_allocations pg_get_statisticsobjdef
    pg_get_statisticsobjdef_columns pg_get_statisticsobjdef_expressions pg_get_triggerdef pg_get_userbyid
    pg_get_viewdef pg_has_role pg_identify_object pg_identify_object_as_address pg_index_column_has_property
    pg_index_has_property pg_indexam_has_property pg_indexam_progress_phasename pg_indexes_size pg_is_in_recovery
    pg_is_other_temp_schema pg_is_wal_replay_paused pg_jit_available pg_last_committed_xact pg_last_wal_receive_lsn
    pg_last_wal_replay_lsn pg_last_xact_replay_timestamp pg_listening_channels pg_lock_status pg_mcv_list_items
    pg_my_temp_schema pg_notification_queue_usage pg_notify pg_opclass_is_visible pg_operator_is_visible
    pg_opfamily_is_visible pg_options_to_table pg_partition_ancestors pg_partition_root pg_partition_tree
    pg_postmaster_start_time pg_prepared_statement pg_prepared_xact pg_relation_filenode pg_relation_filepath
    pg_relation_is_publishable pg_relation_is_updatable pg_relation_size pg_replication_slot_advance
    pg_safe_snapshot_blocking_pids pg_sequence_last_value pg_sequence_parameters pg_settings_get_flags
    pg_show_all_file_settings pg_show_all_settings pg_show_replication_origin_status pg_size_bytes pg_size_pretty
    pg_sleep pg_sleep_for pg_sleep_until pg_snapshot_xip pg_snapshot_xmax pg_snapshot_xmin pg_table_is_visible
    pg_table_size pg_tablespace_databases pg_tablespace_location pg_tablespace_size pg_timezone_abbrevs
    pg_timezone_names pg_total_relation_size pg_trigger_depth pg_try_advisory_lock pg_try_advisory_lock_shared
    pg_try_advisory_xact_lock pg_try_advisory_xact_lock_shared pg_ts_config_is_visible pg_ts_dict_is_visible
    pg_ts_parser_is_visible pg_ts_template_is_visible pg_type_is_visible pg_typeof pg_visible_in_snapshot
    pg_xact_commit_timestamp pg_xact_commit_timestamp_origin pg_xact_status pi plainto_tsquery plpgsql_call_handler
    plpgsql_validator point polygon popen pow power querytree quote_ident quote_literal quote_nullable radians
    radius random range_merge rank regexp_count regexp_instr regexp_like regexp_match regexp_matches regexp_replace
    regexp_split_to_array regexp_split_to_table regexp_substr regr_avgx regr_avgy regr_count regr_intercept regr_r2
    regr_slope regr_sxx regr_sxy regr_syy repeat replace reverse right round row_number row_security_active
    row_to_json rpad rtrim scale session_user set_bit set_byte set_config set_config setseed set_masklen setseed
    setval setweight sha224 sha256 sha384 sha512 sign similar_escape similar_to_escape similarity sin sind sinh
    slope split_part sqrt starts_with statement_timestamp stddev stddev_pop stddev_samp string_agg string_to_array
    string_to_table strip strpos substr sum tan tand tanh text textlen timeofday timestamptz_cmp_date
    timestamptz_cmp_timestamp timezone to_ascii to_char to_date to_hex to_json to_jsonb to_number to_regclass
    to_regcollation to_regnamespace to_regoper to_regoperator to_regproc to_regprocedure to_regrole to_regtype
    to_timestamp to_tsquery to_tsvector transaction_timestamp translate trim_array trim_scale trunc ts_debug
    ts_delete ts_filter ts_headline ts_lexize ts_parse ts_rank ts_rank_cd ts_token_type tsmultirange tsrange
    tsrange_subdiff tstzmultirange tstzrange tstzrange_subdiff txid_current txid_current_if_assigned
    txid_current_snapshot txid_snapshot_xip txid_snapshot_xmax txid_snapshot_xmin txid_status
    txid_visible_in_snapshot unaccent unistr unnest upper upper_inc upper_inf uuid_generate_v1 uuid_generate_v1mc
    uuid_generate_v3 uuid_generate_v4 uuid_generate_v5 uuid_nil var_pop var_samp varbitcmp variance version
    websearch_to_tsquery width width_bucket xml xml_is_well_formed xml_is_well_formed_content
    xml_is_well_formed_document xmlagg xmlcomment xmlconcat2 xmlvalidate
"""
_SYNTAX: Final = """
    check constraint copy include key primary references stored table unique values with
    all and any array as bernoulli between bit by case cast char character coalesce collation conflict cube decimal
    distinct else escape except exists extract fetch filter float from greatest grouping groups having ilike in
    intersect interval is lateral least like limit normalize not nullif numeric offset on or over overlay partition
    position range returning rollup row rows select set sets similar some substring system tablesample then time
    timestamp timestamptz timetz treat trim union using values varbit varchar when where window within xmlconcat
    xmlelement xmlexists xmlforest xmlparse xmlpi xmlroot xmlserialize
"""
FUNCTIONS: Final = frozenset(_NAMES.split())
# words before a bracket that call nothing
SYNTAX: Final = frozenset(_SYNTAX.split())
