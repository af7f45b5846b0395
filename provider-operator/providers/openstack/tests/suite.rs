//! The suite of the plugin on the fake cloud.

#[cfg(test)]
mod on_a_site;

#[cfg(test)]
mod on_the_fake {
    use openstack_lab::fake::{Fake, FakeOptions};

    use crate::on_a_site::OnASite;

    /// A fake of its own for each statement.
    async fn on_the_fake() -> OnASite<Fake> {
        let fake = Fake::start(FakeOptions::default()).await.unwrap();
        OnASite::new(fake.site().clone(), fake)
    }

    provider_plugin::provider_suite!(on_the_fake().await);
}
