-- Marketing: conversion by device, on the intermediate model
select
    device,
    sum(sessions) as sessions,
    sum(conversions) as conversions,
    round(100 * sum(conversions) / sum(sessions), 2) as conversion_pct
from int_sessions_daily
where channel <> 'direct'
group by device
order by sessions desc;
