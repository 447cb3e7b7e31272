//! Reconciliation in the store: drifts, retained results, due days and exclusive runs.

mod allocations;
mod drifts;
mod due_days;
mod exclusivity;
mod midnight;
mod test_shop;
