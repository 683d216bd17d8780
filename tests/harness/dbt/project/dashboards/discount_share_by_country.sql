-- Sales: how much is given away, countries above five per cent
select
    country_code,
    sum(gross_revenue) as gross_revenue,
    sum(discounts) as discounts,
    sum(discounts) / nullif(sum(gross_revenue), 0) as discount_share
from fct_daily_sales
group by country_code
having sum(discounts) > 0.05 * sum(gross_revenue)
order by discount_share desc;
