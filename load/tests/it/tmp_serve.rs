//! tmp
use crate::fake::{Fake, Lie};
#[test]
#[ignore = "tmp"]
fn serve() {
    let fake = Fake::start(Lie::None);
    std::fs::write("/tmp/fake_url", &fake.url).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(60));
}
