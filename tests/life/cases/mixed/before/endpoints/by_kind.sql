SELECT kind, count(*) AS n FROM described GROUP BY kind
