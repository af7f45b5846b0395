//! Certificates change while the operator runs.

use anyhow::{Context, Result, ensure};
use e2e::{Metrics, eventually, journey::SOON};
use http::StatusCode;

use super::{CLASS, cluster, clusters, guarded, installed, is_asked};
use crate::journey;

const EXPIRY: &str = "tls_certificate_expiry_timestamp_seconds";
const REFUSED: &str = "tls_certificate_refused";

#[test]
fn a_certificate_is_renewed_without_a_restart_and_a_broken_one_leaves_the_old_in_use() -> Result<()> {
    journey(async |journey| {
        let mut certificates = guarded(journey, &[]).await?;
        installed(journey).await?;
        let (client, namespace) = (journey.client.clone(), journey.namespace.clone());
        let api = clusters(journey);
        let wrong = cluster("web", CLASS, "v1.34.9");
        let operator = journey.operator()?;
        let (process, port) = (
            operator.process_id().context("it runs")?,
            operator.webhook_port().await?,
        );
        let metrics = operator.metrics_url().await?;
        ensure!(
            operator
                .metrics()
                .await?
                .sum(EXPIRY, &[("server", "webhooks")])
                .is_some_and(|end| end > 0.0)
        );

        // The API server takes a new configuration, and the operator a new certificate, a moment after each other.
        let is_guarded = async || {
            eventually(SOON, "the wrong Cluster to be refused by the webhook", async || {
                let answer = api.try_create(&wrong).await?;
                ensure!(answer.code == 403, "{answer:?}");
                anyhow::Ok(())
            })
            .await
        };
        // The API server trusts the new authority alone, so that only the new certificate makes an answer.
        certificates.change_authority()?;
        certificates.configure(&client, &namespace, port, &[&namespace]).await?;
        is_asked(&api).await?;
        is_guarded().await?;

        certificates.spoil()?;
        let refused = async |expected: f64| {
            let refused = Metrics::read(&metrics).await?.sum(REFUSED, &[("server", "webhooks")]);
            ensure!(refused == Some(expected), "{refused:?}");
            anyhow::Ok(())
        };
        eventually(SOON, "the broken certificate to be told of", async || {
            refused(1.0).await
        })
        .await?;
        let (status, page) = journey.operator()?.health("/readyz").await?;
        let words = "look after certificate of the webhooks: the certificate on disk cannot be used, the one before stays in use until ";
        ensure!(status == StatusCode::OK && page.contains(words), "{status}: {page}");
        is_guarded().await?;

        certificates.renew()?;
        eventually(SOON, "the renewed certificate to be taken", async || refused(0.0).await).await?;
        let (status, page) = journey.operator()?.health("/readyz").await?;
        ensure!((status, page.as_str()) == (StatusCode::OK, "ok\n"), "{status}: {page}");
        is_guarded().await?;
        ensure!(journey.operator()?.process_id() == Some(process), "it was restarted");
        Ok(())
    })
}
