export async function postgresFaults() {}
