-- Merchandising: margin by category, second half of the year
select
    department,
    category_name,
    sum(net_revenue) as net_revenue,
    sum(gross_margin) as gross_margin,
    round(100 * sum(gross_margin) / nullif(sum(net_revenue), 0), 1) as margin_pct
from fct_category_sales
where order_month >= '2024-07-01'
group by department, category_name
order by margin_pct desc;
