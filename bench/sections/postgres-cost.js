export async function postgresCost() {}
