use super::*;

fn catalogue(endpoints: &[(&str, &str, &str)]) -> Vec<Service> {
    let endpoints = endpoints
        .iter()
        .map(|(interface, region, url)| serde_json::json!({ "interface": interface, "region": region, "region_id": region, "url": url }));
    let endpoints: Vec<_> = endpoints.collect();
    let services = serde_json::json!([
        { "type": "compute", "endpoints": [{ "interface": "public", "region": "R", "url": "http://nova" }] },
        { "type": "image", "name": "glance", "endpoints": endpoints },
    ]);
    serde_json::from_value(services).unwrap()
}

fn found(endpoints: &[(&str, &str, &str)], region: Option<&str>, interface: Interface) -> Result<String, String> {
    let found = image_url(&catalogue(endpoints), region, interface);
    found.map(String::from).map_err(|error| error.to_string())
}

#[test]
fn version_2_is_found_whatever_the_catalogue_writes() {
    for (written, meant) in [
        ("http://g:9292", "http://g:9292/v2"),
        ("http://g:9292/", "http://g:9292/v2"),
        ("http://g:9292/v2", "http://g:9292/v2"),
        ("http://g:9292/v2/", "http://g:9292/v2"),
        ("http://g:9292/v1", "http://g:9292/v2"),
        ("http://g/image", "http://g/image/v2"),
        ("http://g/image/v2.9/", "http://g/image/v2"),
        ("http://g/v", "http://g/v/v2"),
        ("http://g/vm", "http://g/vm/v2"),
    ] {
        let url = found(&[("public", "R", written)], None, Interface::Public);
        assert_eq!(url.as_deref(), Ok(meant), "{written}");
    }
}

#[test]
fn the_wanted_interface_is_preferred_and_the_public_one_will_do() {
    let both = [("public", "R", "http://public"), ("internal", "R", "http://internal")];
    assert_eq!(found(&both, None, Interface::Internal).unwrap(), "http://internal/v2");
    assert_eq!(found(&both, Some("R"), Interface::Public).unwrap(), "http://public/v2");
    assert_eq!(found(&both, None, Interface::Admin).unwrap(), "http://public/v2");
    let inside = [("internal", "R", "http://internal"), ("weird", "R", "http://weird")];
    assert!(
        found(&inside, None, Interface::Public)
            .unwrap_err()
            .contains("public one")
    );
}

#[test]
fn one_of_several_regions_has_to_be_chosen() {
    let two = [("public", "Two", "http://two"), ("public", "One", "http://one")];
    assert_eq!(found(&two, Some("One"), Interface::Public).unwrap(), "http://one/v2");
    let error = found(&two, None, Interface::Public).unwrap_err();
    assert!(error.contains("One, Two") && error.contains("region_name"), "{error}");
    let error = found(&two, Some("Three"), Interface::Public).unwrap_err();
    assert!(error.contains("\"Three\"") && error.contains("One, Two"), "{error}");
}

#[test]
fn a_catalogue_without_a_usable_image_service_says_so() {
    assert!(
        found(&[], None, Interface::Public)
            .unwrap_err()
            .contains("no image service")
    );
    let nonsense = found(&[("public", "R", "glance")], None, Interface::Public).unwrap_err();
    assert!(nonsense.contains("image_endpoint_override"), "{nonsense}");
}
