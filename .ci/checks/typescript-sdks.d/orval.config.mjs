// The base URL of the documentation, which ends with /api/v1.
const baseUrl = process.env.PARTNER_URL;

export default {
    partner: { input: "partner.json", output: { target: "orval/partner.ts", client: "fetch", baseUrl } },
};
